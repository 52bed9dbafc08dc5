/** Accounting webhooks: who is told, what there is to tell, and how far that has come. */
import type { Defaulted, Flag, Id } from './kinds.ts'

export interface WebhookEndpointTable {
  id: Id
  /** Hears of this tenant only; null: of everything. */
  tenant_id: number | null
  url: string
  description: string | null
  /** JSON array of event types; `["*"]`: all. */
  events: string
  is_active: Defaulted<Flag>
  /** Why the service itself switched it off: the receiver said 410, or too much waited for it. */
  disabled_reason: 'gone' | 'backlog' | null
  /** Sealed (`schema/secrets`): `whsec_` and base64. */
  secret: string
  /** Sealed; signs too, until it expires. */
  previous_secret: string | null
  previous_secret_expires_at: number | null
  /** It is gone for everybody; its deliveries are being removed. */
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
  /** HTTP status; null: no answer. */
  last_status: number | null
  last_error: string | null
}
