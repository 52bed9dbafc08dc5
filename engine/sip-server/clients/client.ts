/** Connected applications, whatever they are connected by. */
import type { AppEvent } from '../application.ts'

/** One application's connection, as seen from the server. */
export interface Client {
  /** It has no socket in between. */
  readonly isInProcess: boolean
  /** Hands over an event; events arrive in this order. */
  deliver(event: AppEvent): void
  /** Ends the connection after the events that were delivered before. */
  close(): void
}
