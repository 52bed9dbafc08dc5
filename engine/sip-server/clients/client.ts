/** Connected applications, whatever they are connected by. */
import type {
  AppCommand,
  AppEvent,
  Application,
  ApplicationLink,
  SavedDialogs,
} from '../application.ts'
import { decodeCommand } from '../wire/command.ts'
import { encodeEvent } from '../wire/event.ts'

/** One application's connection, as seen from the server. */
export interface Client {
  /** Without a socket in between. */
  readonly isInProcess: boolean
  /** Hands over an event; events arrive in this order. */
  deliver(event: AppEvent): void
  /** Ends the connection after the events that were delivered before. */
  close(): void
}

interface ClientCallbacks {
  readonly connected: (clientId: number, isInProcess: boolean) => void
  readonly command: (clientId: number, command: AppCommand) => void
  /** An application of this process has seen a new INVITE. */
  readonly handled?: (clientId: number, transactionId: string) => void
  readonly disconnected: (clientId: number) => void
}

/** The table of connected applications. Ids are never used twice. */
export class Clients {
  readonly #callbacks: ClientCallbacks
  readonly #byId = new Map<number, Client>()
  #lastId = 0

  constructor(callbacks: ClientCallbacks) {
    this.#callbacks = callbacks
  }

  get size(): number {
    return this.#byId.size
  }

  /**
   * @param clientId the id that the core has chosen for an application that this server has
   * connected to
   */
  add(client: Client, clientId = ++this.#lastId): number {
    this.#byId.set(clientId, client)
    this.#callbacks.connected(clientId, client.isInProcess)
    return clientId
  }

  /** The dialer could not reach the application. */
  neverCame(clientId: number): void {
    this.#callbacks.disconnected(clientId)
  }

  /** A command of a client; ignored once the client is gone. */
  receive(clientId: number, command: AppCommand): void {
    if (this.#byId.has(clientId)) this.#callbacks.command(clientId, command)
  }

  handled(clientId: number, transactionId: string): void {
    this.#callbacks.handled?.(clientId, transactionId)
  }

  /** The connection has ended. Safe to repeat. */
  remove(clientId: number): void {
    if (this.#byId.delete(clientId)) this.#callbacks.disconnected(clientId)
  }

  deliver(clientId: number, event: AppEvent): void {
    this.#byId.get(clientId)?.deliver(event)
  }

  /** Nothing that the client still sends is read. */
  disconnect(clientId: number): void {
    const client = this.#byId.get(clientId)
    this.remove(clientId)
    client?.close()
  }

  disconnectAll(): void {
    for (const clientId of this.#byId.keys()) this.disconnect(clientId)
  }
}

// An application in the same process: events and commands are handed over as they are. Towards the
// application always later, never inside a call that it made: it may register what it waits for
// after `send`.

/**
 * An application that speaks the drachtio protocol, one payload at a time, without length prefix.
 */
export interface InProcessClient {
  onPayload(payload: string): void
  onClose(): void
}

export interface InProcessLink {
  send(payload: string): void
  close(): void
}

/** A client that has more events than this in one turn of the event loop is dropped. */
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
