/**
 * An application in the same process: events and commands are handed over as they are. Towards the application
 * always later, never inside a call that it made: it may register what it waits for after `send`.
 */
import type { AppEvent, Application, ApplicationLink, SavedDialogs } from '../application.ts'
import { decodeCommand } from '../wire/command.ts'
import { encodeEvent } from '../wire/event.ts'
import type { Client, Clients } from './client.ts'

/** An application that speaks the drachtio protocol, one payload at a time, without length prefix. */
export interface InProcessClient {
  onPayload(payload: string): void
  onClose(): void
}

export interface InProcessLink {
  send(payload: string): void
  close(): void
}

/** More than this in one turn of the event loop means that something runs away: the client is dropped. */
const maxQueuedEvents = 65_536

/** @param clients the table that the application is entered into */
export function connectApplication(
  clients: Clients,
  application: Application,
  more?: {
    readonly savedDialogs: (clientId: number) => SavedDialogs
    readonly ping: NonNullable<ApplicationLink['ping']>
  },
): ApplicationLink {
  const queue = new DeliveryQueue(application, {
    overflowed: () => clients.remove(clientId),
    handled: (transactionId) => clients.handled(clientId, transactionId),
  })
  const clientId = clients.add(queue)
  return {
    send: (command) => clients.receive(clientId, command),
    close: () => {
      queue.discard()
      clients.remove(clientId)
    },
    ...(more && { saved: more.savedDialogs(clientId), ping: more.ping }),
  }
}

export function connectInProcess(clients: Clients, client: InProcessClient): InProcessLink {
  let events = 0
  const link = connectApplication(clients, {
    onEvent: (event) => {
      events += 1
      client.onPayload(encodeEvent(event, events.toString(36)))
    },
    onClose: () => client.onClose(),
  })
  return { send: (payload) => link.send(decodeCommand(payload)), close: () => link.close() }
}

interface DeliveryPorts {
  readonly overflowed: () => void
  /** The application has seen a new INVITE. */
  readonly handled: (transactionId: string) => void
}

/**
 * Each event gets its own turn of `setImmediate`, so that the promises that it resolved have run
 * before the next one arrives, as they would between two packets. All turns that are due run
 * in one phase of the event loop: busy sockets cannot hold deliveries back.
 */
class DeliveryQueue implements Client {
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
