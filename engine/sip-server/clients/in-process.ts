/**
 * An application in the same process: wire payloads are handed over as strings, without sockets and
 * framing. Towards the application always later, never inside a call that it made: drachtio-srf
 * registers who waits for an answer only after `send` has returned.
 */
import type { Client, Clients } from './client.ts'

/** The application's end. Both are called from the event loop, one payload per turn, in order. */
export interface InProcessClient {
  onPayload(payload: string): void
  /** The server has ended the connection; nothing follows. */
  onClose(): void
}

/** What the application holds. */
export interface InProcessLink {
  /** One wire payload, without length prefix. May be called at any time, also from `onPayload`. */
  send(payload: string): void
  /** Ends the connection at once: nothing more is handed over. Safe to repeat. */
  close(): void
}

/** More than this in one turn of the event loop means that something runs away: the client is dropped. */
const maxQueuedPayloads = 65_536

/** @param clients the table that the application is entered into */
export function connectInProcess(clients: Clients, application: InProcessClient): InProcessLink {
  const queue = new DeliveryQueue(application, () => clients.remove(clientId))
  const clientId = clients.add(queue)
  return {
    send: (payload) => clients.receive(clientId, payload),
    close: () => {
      queue.discard()
      clients.remove(clientId)
    },
  }
}

/**
 * Each payload gets its own turn of `setImmediate`, so that the promises that it resolved have run
 * before the next one arrives, as they would between two packets. All turns that are due run
 * in one phase of the event loop: busy sockets cannot hold deliveries back.
 */
class DeliveryQueue implements Client {
  readonly isInProcess = true
  readonly #application: InProcessClient
  readonly #overflowed: () => void
  /** `closing`: what is queued is still handed over. `discarded`: nothing is. */
  #state: 'open' | 'closing' | 'discarded' = 'open'
  #queued = 0

  constructor(application: InProcessClient, overflowed: () => void) {
    this.#application = application
    this.#overflowed = overflowed
  }

  deliver(payload: string): void {
    if (this.#state !== 'open') return
    if (this.#queued >= maxQueuedPayloads) {
      this.close()
      this.#overflowed()
      return
    }
    this.#queued++
    setImmediate(this.#handOver, payload)
  }

  close(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    setImmediate(this.#handOverClose)
  }

  discard(): void {
    this.#state = 'discarded'
  }

  readonly #handOver = (payload: string): void => {
    this.#queued--
    if (this.#state !== 'discarded') this.#application.onPayload(payload)
  }

  readonly #handOverClose = (): void => {
    if (this.#state !== 'discarded') this.#application.onClose()
  }
}
