/** Accounting webhooks: endpoints, events and deliveries. */
import type { Defaulted, Flag, Id } from './kinds.ts'

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
  /** The node that is sending it, and until when no other one does; null: none. */
  claimed_by: string | null
  claimed_until: number | null
}
