/** Call control of this process on its own server. */
import type {
  AppEvent,
  AppMessage,
  Application,
  OpenedPort,
  PingDone,
  RequestEvent,
  RequestWay,
  SavedDialog,
  SavedDialogs,
  SavedInvite,
  SipCommand,
  SipListener,
  SipPort,
  SipPortUser,
  SipSender,
} from '../application.ts'
import type { SipCore } from '../core/core.ts'
import type { SavedState } from '../core/saved-state.ts'
import type { Driver } from '../driver.ts'
import type { Listener } from '../flow.ts'
import { ReleasingMap } from '../../../schema/sip/releasing-map.ts'
import { serverVersion } from '../options.ts'
import type { Clients } from './clients.ts'
import { DeliveryQueue } from './delivery-queue.ts'

/** The name of the only server. */
const ONLY = ''

/** Commands go to the core at once, events come back in turns of the event loop. */
export class EmbeddedPort implements SipPort, SavedDialogs, Application {
  readonly reportsTrying = true
  readonly keepsSessionTimers = true
  readonly isRemote = false
  readonly saved = this
  readonly #clients: Clients
  readonly #driver: Driver<SipCore>
  readonly #state: SavedState
  readonly #listeners: () => readonly Listener[]
  /** Senders that wait for a reply, by command. */
  readonly #waiting = new ReleasingMap<string, SipSender>()
  #hostPorts: readonly string[] = []
  /** Undefined before `open`, and once the connection is gone. */
  #user: SipPortUser | undefined
  #queue: DeliveryQueue | undefined
  #clientId = 0
  #commands = 0

  constructor(
    clients: Clients,
    driver: Driver<SipCore>,
    state: SavedState,
    listeners: () => readonly Listener[],
  ) {
    this.#clients = clients
    this.#driver = driver
    this.#state = state
    this.#listeners = listeners
  }

  get hostPorts(): readonly string[] {
    return this.#hostPorts
  }

  get listeners(): readonly SipListener[] {
    return this.#listeners().map(({ protocol, address, port }) => ({
      protocol,
      host: address,
      port,
    }))
  }

  get unconfirmed(): number {
    return this.#waiting.size
  }

  /** After the start of the server. */
  async open(user: SipPortUser): Promise<OpenedPort> {
    this.#user = user
    this.#queue = new DeliveryQueue(this, {
      overflowed: () => this.#clients.remove(clientId),
      handled: (transactionId) => this.#clients.handled(clientId, transactionId),
    })
    const clientId = this.#clients.add(this.#queue)
    this.#clientId = clientId
    const hostPorts = this.#driver.run('new port', (core) => core.openPort(clientId, user.methods))
    if (hostPorts === undefined) return { kind: 'refused', reason: 'the SIP server is stopped' }
    this.#hostPorts = hostPorts
    return { kind: 'connected', version: serverVersion }
  }

  close(): void {
    this.#queue?.discard()
    this.#clients.remove(this.#clientId)
  }

  serverFor(): string | undefined {
    return this.#user && ONLY
  }

  request(
    message: AppMessage,
    { dialogId, nextHop: routeUrl }: RequestWay,
    sender: SipSender | undefined,
  ): boolean {
    return this.#send({ kind: 'sip', transactionId: '', dialogId, routeUrl, message }, sender)
  }

  cancel(transactionId: string, message: AppMessage): void {
    this.#send({ kind: 'sip', transactionId, dialogId: '', routeUrl: '', message }, undefined)
  }

  respond(
    transactionId: string,
    message: AppMessage,
    toStranger: boolean,
    sender: SipSender | undefined,
  ): boolean {
    return this.#send(
      { kind: 'sip', transactionId, dialogId: '', routeUrl: '', message, toStranger },
      sender,
    )
  }

  /** The server has judged sources before it read their requests. */
  refusalOf(): undefined {
    return undefined
  }

  /** The server itself knows the flows of phones. */
  noteRegistered(): void {}

  ping(target: string, done: PingDone): boolean {
    if (this.#user === undefined) return false
    return this.#driver.run('ping', (core, now) => core.ping(target, done, now)) === true
  }

  saveDialog(dialogId: string): SavedDialog | undefined {
    return this.#state.saveDialog(this.#clientId, dialogId)
  }

  saveInvite(transactionId: string): SavedInvite | undefined {
    return this.#state.saveInvite(this.#clientId, transactionId)
  }

  restoreDialog(dialog: SavedDialog): boolean {
    const restore = (_: SipCore, now: number): boolean =>
      this.#state.restoreDialog(this.#clientId, dialog, now)
    return this.#driver.run('restore', restore) === true
  }

  restoreInvite(invite: SavedInvite): RequestEvent | undefined {
    return this.#driver.run('restore', (_, now) =>
      this.#state.restoreInvite(this.#clientId, invite, now),
    )
  }

  #send(command: SipCommand, sender: SipSender | undefined): boolean {
    if (this.#user === undefined) return false
    this.#commands += 1
    const id = this.#commands.toString(36)
    if (sender) this.#waiting.set(id, sender)
    this.#clients.receive(this.#clientId, { id, command })
    return true
  }

  onEvent(event: AppEvent): void {
    switch (event.kind) {
      case 'request':
      case 'response':
      case 'unsolicited':
        return this.#user?.onEvent(event, undefined)
      case 'request-sent':
      case 'response-sent':
      case 'refused': {
        const sender = this.#waiting.get(event.commandId)
        this.#waiting.delete(event.commandId)
        return this.#user?.onEvent(event, sender)
      }
      // The other events answer commands that a port never gives.
      default:
        return undefined
    }
  }

  onClose(): void {
    const user = this.#user
    this.#user = undefined
    this.#waiting.clear()
    user?.onLost(ONLY)
  }
}
