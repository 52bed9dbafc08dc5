/** Changes, proposals and their causes; sessions of agents; accounting webhooks. */
import type { Defaulted, Id, Flag } from '../columns.ts'
import type { ProposalState } from '../contracts/field-values.ts'

export interface ChangeTables {
  webhook_endpoint: WebhookEndpointTable
  webhook_event: WebhookEventTable
  webhook_delivery: WebhookDeliveryTable
  change_proposal: ChangeProposalTable
  change_entry: ChangeEntryTable
  mcp_session: McpSessionTable
  mcp_subscription: McpSubscriptionTable
  state_change: StateChangeTable
  key_address: KeyAddressTable
  api_hour: ApiHourTable
  wrong_password: WrongPasswordTable
}

/**
 * `pending`: it is being made. `unconfirmed`: the process ended while it was made, and nothing says
 * whether it was. `superseded`: its time ran out after a later change of the same target.
 */
export const changeStates = [
  'pending',
  'made',
  'unconfirmed',
  'undone',
  'expired',
  'superseded',
] as const

export type ChangeState = (typeof changeStates)[number]

export interface ChangeEntryTable {
  id: Id
  /** A UUID. */
  change_id: string
  at: number
  /** As in the audit log. */
  actor: string
  /** For a key: its name at that time. */
  actor_name: string | null
  /** The tenant in which the actor acted; null: all. */
  tenant_id: number | null
  tool: string
  /** JSON array of the scopes that the tool requires besides those of MCP. */
  scopes: string
  target_kind: string
  target_id: string
  reason: string | null
  effect: string
  /** JSON, without secrets; null: it was not there. */
  state_before: string | null
  state_after: string | null
  undo: 'restores' | 'none'
  expires_at: number | null
  state: ChangeState
  undone_at: number | null
  undone_by: string | null
  undo_reason: string | null
  /** A process is making or undoing the change until then at the latest. */
  claimed_until: number | null
  proposal_id: string | null
}

/** A change that an agent has proposed, and what a person has decided. */
export interface ChangeProposalTable {
  id: Id
  uuid: string
  at: number
  /** The tenant of the change; null: the proposal is the platform's. */
  tenant_id: number | null
  /** The domain of the credential that proposed it; null: all domains. */
  domain: string | null
  /** The proposer, as in the audit log. */
  actor: string
  /** The name of the key. */
  actor_name: string | null
  tool: string
  /** JSON object, without secrets. */
  arguments: string
  /** SHA-256, base64url, of tool, tenant and arguments: an open proposal is not made twice. */
  arguments_digest: string
  reason: string
  effect: string
  /** JSON object of counts. */
  affected: string
  /** JSON. */
  previous_state: string
  undo: string
  risk: 'low' | 'medium' | 'high'
  /** SHA-256, base64url, of the plan that a person is shown. */
  plan_digest: string
  /**
   * The target of the arguments when the proposal was shown, such as `customer 7`; null: an earlier
   * version showed it.
   */
  target: Defaulted<string | null>
  /** Grows each time the shown plan changes. */
  revision: Defaulted<number>
  expires_at: number
  state: Defaulted<ProposalState>
  decided_at: number | null
  decided_by: string | null
  decided_by_name: string | null
  decided_via: 'api' | 'link' | null
  /** The comment of the person who decided. */
  note: string | null
  /** When the outcome was known; null while an approved change is being made. */
  settled_at: number | null
  /** Null: nothing had to be changed, or nothing was. */
  change_id: string | null
  failure: string | null
}

/** At most `MAX_CHANGES_OF_ONE` per subject: `engine/state-changes.ts`. */
export interface StateChangeTable {
  id: Id
  kind: StateChangeKind
  /** The id of the node, the gateway or the carrier. */
  subject_id: number
  /** Its owner at that time: ids of removed rows may be given again. */
  tenant_id: number | null
  /** The destination, or the name of the carrier. */
  name: string
  from_state: string
  to_state: string
  cause: 'probe' | 'call' | 'operator' | 'reload' | 'register'
  reason: string
  /** As in the audit log; null: no operator. */
  actor: string | null
  /** The instance that observed the change. */
  observer: string
  at: number
}

export type StateChangeKind = 'node' | 'gateway' | 'registration'

/**
 * Addresses from which a key was used. At most `MAX_ADDRESSES` per key:
 * `control/auth/key-usage.ts`.
 */
export interface KeyAddressTable {
  application_key_id: number
  address: string
  first_at: number
  last_at: number
  requests: number
  /** Requests that were answered with 401, 403 or 429. */
  denied: number
}

/** Requests of an hour by key, route and outcome; older hours are removed. */
export interface ApiHourTable {
  /** Hours since 1970-01-01 UTC. */
  hour: number
  /** 0: none; of such requests only those that failed are counted. */
  application_key_id: number
  /** Method and path pattern. */
  route: string
  /** The code of the error, or its status; empty: a success. */
  outcome: string
  requests: number
  first_at: number
  last_at: number
}

/** Wrong passwords of phones; older hours are removed: `engine/registrar/wrong-passwords.ts`. */
export interface WrongPasswordTable {
  /** Hours since 1970-01-01 UTC. */
  hour: number
  tenant_id: number
  /** 0: there is no such extension. */
  extension_id: number
  /** An IPv4 address, or an IPv6 network; empty: one of many. */
  source: string
  failures: number
  first_at: number
  last_at: number
}

interface McpSessionTable {
  /** A UUID: `Mcp-Session-Id`. */
  session_id: string
  /** As in the audit log: no other credential can use it. */
  actor: string
  /** The tenant in which the actor acts; null: all. */
  tenant_id: number | null
  /** A UUID: of its newest stream, on any instance. */
  reader: string | null
  used_at: number
}

interface McpSubscriptionTable {
  session_id: string
  uri: string
  /** A digest of the state that the client knows; empty: it knows none. */
  seen: string
}

// ---- accounting webhooks: endpoints, events and deliveries -------------------------------

export interface WebhookEndpointTable {
  id: Id
  /** Receives events of this tenant only; null for all events. */
  tenant_id: number | null
  url: string
  description: string | null
  /** JSON array of event types; `["*"]` for all. */
  events: string
  is_active: Defaulted<Flag>
  /** Why the service deactivated it: the receiver returned 410, or too many deliveries waited. */
  disabled_reason: 'gone' | 'backlog' | null
  /** Encrypted (`schema/secrets`): `whsec_` and base64. */
  secret: string
  /** Encrypted; also signs until it expires. */
  previous_secret: string | null
  previous_secret_expires_at: number | null
  /** The user with whose rights its links approve changes; null: its events have no links. */
  approver_id: number | null
  /** Removed; its deliveries are being deleted. */
  removed_at: number | null
  created_at: number
  updated_at: number
}

export interface WebhookEventTable {
  id: Id
  /** `webhook-id`: the same in every attempt and for every endpoint. */
  message_id: string
  type: string
  /** The JSON that is signed and sent. */
  body: string
  created_at: number
}

export interface WebhookDeliveryTable {
  id: Id
  endpoint_id: number
  event_id: number
  state: Defaulted<'pending' | 'delivered' | 'failed'>
  attempts: Defaulted<number>
  next_attempt_at: number
  last_attempt_at: number | null
  /** HTTP status; null without a response. */
  last_status: number | null
  last_error: string | null
  /** The start of the response body. */
  last_answer: string | null
  /** The instance that sends it until `claimed_until`; null: none. */
  claimed_by: string | null
  claimed_until: number | null
}
