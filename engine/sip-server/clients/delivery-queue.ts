/** Events on their way to an application of this process. */
import type { AppEvent, Application } from '../application.ts'
import type { Client } from './client.ts'

/** A client that has more events than this in one turn of the event loop is dropped. */
const maxQueuedEvents = 65_536

interface DeliveryPorts {
  readonly overflowed: () => void
  /** The application has seen a new INVITE. */
  readonly handled: (transactionId: string) => void
}

/**
 * Hands events over to an application in the same process, never inside a call that it has made: it
 * may register what it waits for after that.
 *
 * Each event gets its own turn of `setImmediate`, so that the promises that it resolved have run
 * before the next one arrives, as they would between two packets. All turns that are due run
 * in one phase of the event loop: busy sockets cannot hold deliveries back.
 */
export class DeliveryQueue implements Client {
  readonly isInProcess = true
  readonly #application: Application
  readonly #ports: DeliveryPorts
  /** `closing`: what is queued is still handed over. `discarded`: nothing is. */
  #state: 'open' | 'closing' | 'discarded' = 'open'
  #queued = 0

  constructor(application: Application, ports: DeliveryPorts) {
    this.#application = application
    this.#ports = ports
  }

  deliver(event: AppEvent): void {
    if (this.#state !== 'open') return
    if (this.#queued >= maxQueuedEvents) {
      this.close()
      this.#ports.overflowed()
      return
    }
    this.#queued++
    setImmediate(this.#handOver, event)
  }

  close(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    setImmediate(this.#handOverClose)
  }

  discard(): void {
    this.#state = 'discarded'
  }

  readonly #handOver = (event: AppEvent): void => {
    this.#queued--
    if (this.#state === 'discarded') return
    this.#application.onEvent(event)
    if (event.kind === 'request' && event.isNew && event.message.method === 'INVITE')
      this.#ports.handled(event.transactionId)
  }

  readonly #handOverClose = (): void => {
    if (this.#state !== 'discarded') this.#application.onClose()
  }
}
