/**
 * Why the platform refuses and ends calls. Each `denial_code` has one sentence with the reason and
 * advice. The sentence is made when the call is refused, stored with its record, and shown
 * everywhere. Tenants and peers of calls read it, so it must not mention other tenants.
 */
import type { DenialCode, OcsRefusal } from './charging.ts'

interface Denial {
  readonly why: string
  readonly advice: string
  /** Tools with which an agent finds out more, or repairs the cause. */
  readonly tools?: string
  /** The peer of the call gets the status alone. */
  readonly isSecret?: true
}

const denials = {
  insufficient_funds: {
    why: 'The customer has too little money for the call',
    advice: 'top up the wallet, or raise its credit limit',
    tools:
      'get_customer_balance shows the balance. set_customer_limits lets it owe more for a ' +
      'while; a person can top up the wallet.',
  },
  customer_inactive: {
    why: 'The customer, or its tenant, is inactive',
    advice: 'activate it',
  },
  destination_blocked: {
    why: 'A rate or an outbound route blocks the number',
    advice: 'unblock the prefix if the call is meant',
    tools: 'lookup_rate shows whether the rate is blocked.',
  },
  concurrent_limit: {
    why: 'The customer has reached its limit of calls at once',
    advice: 'wait until a call ends, or raise max_concurrent_calls',
    tools: 'get_customer_balance shows the limit. set_customer_limits raises it.',
  },
  cps_limit: {
    why: 'The customer starts too many calls in a second',
    advice: 'spread the calls over more time, or raise max_cps',
    tools: 'get_customer_balance shows the limit. set_customer_limits raises it.',
  },
  daily_spend_limit: {
    why: 'The customer has reached its daily limit of spending',
    advice: 'wait until 00:00 UTC, or raise max_daily_spend',
    tools: 'get_ledger shows what was spent. set_customer_limits raises the limit.',
  },
  spend_guard: {
    why: 'A spend guard stops calls to the number',
    advice: 'remove the guard if the call is meant, or wait until it expires',
    tools: 'list_spend_guards shows it, with its reason. remove_spend_guard takes it off.',
  },
  caller_id_forbidden: {
    why: 'The caller may not present the number',
    advice: 'give the customer the number, or change caller_identity of its rules',
    tools: 'simulate_call shows which number would be presented, and why.',
  },
  unknown_caller: {
    why: 'The calling number belongs to no customer, so nobody pays',
    advice: 'give the number to a customer, or set the customer of the extension or carrier',
    tools: 'list_customers finds the customer. add_number gives it the number.',
  },
  payer_of_other_tenant: {
    why: "The payer is not a customer of the source's tenant",
    advice: 'set such a customer on the carrier or extension',
    isSecret: true,
  },
  no_payer: {
    why: 'The source of the call has no customer, so nobody pays',
    advice: 'set the customer of the carrier, or its payer to from_number',
  },
  no_rate: {
    why: 'The rate plan has no rate for the number',
    advice: 'add a rate for its prefix, or check the number',
    tools: 'lookup_rate confirms it. add_rate adds a rate to the plan.',
  },
  max_call_seconds: {
    why: 'The call has reached the longest duration that its customer allows',
    advice: 'raise max_call_seconds if calls may be longer',
  },
  unknown_call: {
    why: 'The charging system knows no open call with this uuid',
    advice: 'authorize the call first',
  },
  ocs_unreachable: {
    why: 'The charging system did not answer in time',
    advice: 'check the charging system and its database',
  },
  records_waiting: {
    why: 'Too many call records wait for the database',
    advice: 'check the disk or the database server',
    tools: 'get_telemetry shows how many wait.',
  },
  too_many_calls: {
    why: 'The node has too many calls',
    advice: 'add a node',
  },
  database_away: {
    why: 'The database server has not answered for longer than DATABASE_AWAY_SECONDS',
    advice: 'check the server and the network to it',
  },
  lease_unheard: {
    why: 'The database server did not report the balance in time',
    advice: 'check its load and its answer times',
  },
  limit_unheard: {
    why: 'The database server did not report the use of a limit in time',
    advice: 'check its load and its answer times',
  },
  cap_unheard: {
    why: 'The database server did not report the rest of a cap in time',
    advice: 'check its load and its answer times',
  },
  lease_contended: {
    why: 'Other calls took the money of the wallet first',
    advice: 'call again',
  },
  time_limit: {
    why: 'A test call ends by itself',
    advice: 'do nothing, the test is over',
  },
  media_timeout: {
    why: 'Neither party sends audio',
    advice: 'check their network and NAT settings, or raise MEDIA_TIMEOUT_SECONDS',
  },
  application_lost: {
    why: 'The process of the drachtio-srf application that had the call has ended',
    advice: 'read the log for the error that ended it',
  },
  media_relay_unavailable: {
    why: 'The call needs a media relay, and none answers',
    advice: 'start the relay, or check that it can be reached',
  },
  unreadable_description: {
    why: 'The call needs a media relay, and the session description cannot be read',
    advice: 'let the sender describe the session in plain SDP, alone or in a multipart body',
  },
  no_common_ip_version: {
    why: 'The parties have no IP version in common, and no media relay converts it',
    advice: 'start a media relay with addresses of both versions',
  },
  no_candidate: {
    why: 'No destination is in service, or none has answered in time',
    advice: 'check that its PBX nodes or gateways answer OPTIONS',
    tools:
      'The attempts of the record name the destinations: get_dispatcher_status shows PBX ' +
      'nodes, list_trunks carriers and their gateways.',
  },
  node_limit: {
    why: 'Every node of the dispatcher set has reached its max_calls',
    advice: 'wait until a call ends, add a node, or raise max_calls',
    tools: 'get_dispatcher_status shows them.',
  },
  no_gateway: {
    why: 'A route takes the number, but no gateway of its carriers can take the call',
    advice: 'check that the carriers are active and their gateways answer',
    tools:
      'list_trunks shows the carriers and their gateways, list_routes the routes. ' +
      'set_trunk_state puts a carrier into service.',
  },
  no_carrier_price: {
    why: 'No carrier of the least-cost routes has a price for the number',
    advice: "add the prefix to the carriers' rate plans, or route it without least cost",
    tools: 'simulate_call shows the routes, and why each is passed over.',
  },
  no_profit: {
    why: 'Every carrier of the number would leave less of its price than loss protection wants',
    advice: 'add a cheaper carrier, raise the selling price, or lower min_margin',
    tools: 'simulate_call shows price, cost and margin of the expected call by each carrier.',
  },
  no_route: {
    why: 'No outbound route takes the number, and no extension has it',
    advice: 'add an outbound route for its prefix, or check the number',
    tools: 'list_routes shows the routes.',
  },
  carrier_limit: {
    why: 'The carrier has reached max_calls or max_cps',
    advice: 'wait until a call ends, or raise the limit',
    tools: 'list_trunks shows its limits and live calls.',
  },
  agent_limit: {
    why: 'The AI agent has reached its max_calls',
    advice: 'wait until a call ends, or raise max_calls',
  },
  unknown_source: {
    why:
      'The source of the call is no carrier, no node, no trusted address and no registered ' +
      'phone',
    advice: 'add its address as a gateway of a carrier, or let the phone register',
    isSecret: true,
  },
  unknown_extension: {
    why: 'No extension has the number, and no outbound route takes it',
    advice: 'create the extension, or check the number and the inbound route',
  },
  extension_unregistered: {
    why: 'No phone of the extension is registered',
    advice: 'register a phone, or turn on its voicemail',
    tools: 'list_registrations shows the phones of an extension.',
  },
  no_number: {
    why: 'The request contains no number',
    advice: 'dial a number',
  },
  malformed_number: {
    why: 'The caller dialled no telephone number',
    advice: 'dial digits, *, # and a leading + only, or add a number rule to the carrier',
  },
  unknown_name: {
    why: 'No AI agent has the dialled name',
    advice: 'give the agent this name, or dial a number',
  },
  number_inactive: {
    why: 'The called number is switched off',
    advice: 'switch it on, if calls to it are meant',
    tools: 'list_phone_numbers shows it.',
  },
  unknown_agent: {
    why: 'The AI agent does not exist, or is switched off',
    advice: 'switch it on, or correct the inbound route',
  },
  other_tenant: {
    why: 'The number or domain is out of reach for the caller',
    advice: 'dial a number of its own tenant, or add an outbound route',
    isSecret: true,
  },
  foreign_domain: {
    why: 'The dialled domain does not belong to this platform',
    advice: 'dial a domain of the tenant, or list the domain in FOREIGN_DOMAINS',
  },
  unpriced_gateway: {
    why: "The call would reach a carrier's gateway without a price",
    advice: 'use an outbound route to the carrier',
  },
  emergency_number: {
    why: 'A test does not call emergency numbers',
    advice: 'test with an ordinary number',
  },
  internal_number: {
    why: 'The number needs no carrier',
    advice: 'test with a number outside',
  },
  overload: {
    why: 'The platform has more calls than it can serve in time',
    advice: 'call again later, or add a node',
    tools: 'get_telemetry shows its load.',
  },
  storage_unavailable: {
    why: 'The platform cannot store call records',
    advice: 'free the disk, or bring the database back: the log names the fault',
    tools: 'get_telemetry shows storage_available.',
  },
  node_fenced: {
    why: 'Another process has taken over the name of this node',
    advice: 'restart the node with a NODE_NAME of its own',
    tools:
      'list_instances shows the processes. The one to be restarted says node_fenced in /readyz.',
  },
  draining: {
    why: 'The process is about to stop',
    advice: 'call again in a moment, or call another node',
  },
  fault: {
    why: 'A fault of the platform has ended the call',
    advice: 'report it with the error in the log',
  },
  connection_lost: {
    why: 'The call has lost its connection',
    advice: 'call again, and check the network if it happens often',
  },
  hook_refused: {
    why: "The operator's own code has refused the call",
    advice: 'look at the trace of the call, which names the hook',
    isSecret: true,
  },
  hook_failed: {
    why: "The operator's own code has failed, and no call goes on without it",
    advice: 'mend the code, which the trace of the call names, or set its fallback to continue',
    isSecret: true,
  },
  identity_missing: {
    why: 'Calls of the carrier must be signed, and this one is not',
    advice: 'let the carrier sign it, or set stir.verify of the carrier to mark',
  },
  identity_stale: {
    why: 'The signature of the caller is too old',
    advice: 'check the clocks of both sides',
  },
  identity_info: {
    why: 'The certificate of the signature cannot be fetched or read',
    advice: 'check the way to the address in the header Identity',
  },
  identity_credential: {
    why: 'The certificate of the signature is of no authority that is trusted here',
    advice: 'add its authority if it is to be trusted',
  },
  identity_invalid: {
    why: 'The signature of the caller is wrong, or of another call',
    advice: 'take the number for forged, and tell the carrier',
  },
  loop: {
    why: 'The call has come back to this platform',
    advice: 'check the routes of the node or carrier that sent it back',
  },
  too_many_hops: {
    why: 'The call has passed too many servers or transfers',
    advice: 'check for a loop, or for a small Max-Forwards',
  },
  bad_request: {
    why: 'The request lacks a header, or has a wrong one',
    advice: 'mend it at the sender, often From, Contact or Replaces',
  },
  bad_extension: {
    why: 'The request requires a SIP extension that is not supported',
    advice: 'turn it off at the sender: the header Unsupported names it',
  },
  unsupported_body: {
    why: 'The request insists on a part of its body that is not understood',
    advice: 'let the sender mark the part with handling=optional, or leave it out',
  },
  message_too_large: {
    why: 'The request is too large',
    advice: 'send fewer headers or a smaller body',
  },
  sips_needs_tls: {
    why: 'The call is by sips, and no TLS leads to its destination',
    advice: 'dial sip, or let the destination use TLS',
  },
  spied_call_ended: {
    why: 'The supervised call has ended',
    advice: 'do nothing',
  },
  transfer: {
    why: 'Another request is transferring the call',
    advice: 'wait until that transfer is over',
  },
  replaces_refused: {
    why: 'The transfer could not connect the new party',
    advice: 'transfer again, or call the party',
  },
  replaces_ended_call: {
    why: 'The call to be replaced has ended',
    advice: 'call the party anew',
  },
  replaces_unknown_call: {
    why: 'The call to be replaced is unknown',
    advice: 'call the party anew',
  },
  replaces_not_allowed: {
    why: 'The caller may not replace a party of that call',
    advice: 'replace calls of the own tenant only',
  },
  replaces_answered_call: {
    why: 'Somebody has answered the call already',
    advice: 'do nothing',
  },
} as const satisfies Record<string, Denial> & Record<DenialCode | OcsRefusal, Denial>

const known: Readonly<Record<string, Denial>> = denials

/** Reason and advice of every code, for the guide. */
export const denialReference: readonly (Pick<Denial, 'why' | 'advice'> & {
  readonly code: string
})[] = Object.entries(known).map(([code, { why, advice }]) => ({ code, why, advice }))

/** An external OCS has codes of its own. */
const denialOf = (code: string): Denial =>
  Object.hasOwn(known, code) ? (known[code] ?? foreign(code)) : foreign(code)

const foreign = (code: string): Denial => ({
  why: `The charging system has refused the call with ${code}`,
  advice: 'ask its operator what that means',
})

const MAX_DETAIL = 300

/**
 * The sentence of a denial. `detail` names what this call is about, such as the limit or the
 * prefix; a tenant reads it in the records of its own calls.
 */
export function denialText(code: string, detail?: string): string {
  const { why, advice } = denialOf(code)
  const about = detail === undefined || detail === '' ? '' : ` (${detail.slice(0, MAX_DETAIL)})`
  return `${why}${about}: ${advice}.`
}

/** The sentence of a stored record. A record of an earlier version has only the code. */
export const storedDenialText = (code: string | null, text: string | null): string | null =>
  text ?? (code === null ? null : denialText(code))

/** Tools for an agent; null: none helps. */
export const toolsFor = (code: string): string | null => denialOf(code).tools ?? null

/**
 * The Warning header (RFC 3261 §20.43) for a known caller. Undefined: the caller gets the status
 * alone.
 */
export function denialWarning(code: string): string | undefined {
  const { why, isSecret } = denialOf(code)
  return isSecret ? undefined : `399 tollgate "${code}: ${why}"`
}
