/** Several drachtio-servers as one port: new requests are spread over the available ones. */
import type { Log } from '../../../../schema/contracts/log.ts'
import type {
  AppMessage,
  OpenedPort,
  RequestEvent,
  RequestWay,
  SipListener,
  SipPort,
  SipPortUser,
  SipSender,
} from '../../../sip-server/application.ts'
import type { Schedule } from '../../../../schema/clock.ts'
import { messageOf } from '../received-request.ts'
import { type ConnectionUser, DrachtioConnection, type ServerAddress } from './connection.ts'
import { PhoneServers } from './phone-servers.ts'
import { parseListener, SoleCheck } from './sole-check.ts'

export interface DrachtioServersDeps {
  /** Addresses of the servers, at least one. */
  readonly servers: readonly ServerAddress[]
  readonly schedule: Schedule
  /** Milliseconds. */
  readonly now: () => number
  readonly log: Log
  /** A value that cannot be guessed; absent: whether others take calls there is not checked. */
  readonly newToken?: () => string
  /**
   * Whether a new request is let in; else it gets 403. To be silent would leave it open there and
   * here. Absent: all are.
   */
  readonly admit?: RequestScreen
}

export type RequestScreen = (
  source: { readonly protocol: string; readonly address: string; readonly port: number },
  method: string,
  userAgent: string | undefined,
) => boolean

export class DrachtioServers implements SipPort {
  readonly reportsTrying = false
  readonly isRemote = true
  readonly saved = undefined
  readonly #deps: DrachtioServersDeps
  readonly #soleCheck: SoleCheck
  readonly #phones = new PhoneServers()
  readonly #connections: DrachtioConnection[] = []
  #turn = 0

  constructor(deps: DrachtioServersDeps) {
    this.#deps = deps
    this.#soleCheck = new SoleCheck(deps.log)
  }

  get keepsSessionTimers(): boolean {
    return this.#connections.every(({ isTollgate }) => isTollgate)
  }

  get hostPorts(): readonly string[] {
    return this.#connections.flatMap(({ hostPorts }) => hostPorts)
  }

  get listeners(): readonly SipListener[] {
    return this.hostPorts.map(parseListener)
  }

  get unconfirmed(): number {
    return this.#connections.reduce((sum, { unconfirmed }) => sum + unconfirmed, 0)
  }

  open(user: SipPortUser): Promise<OpenedPort> {
    const { servers } = this.#deps
    return new Promise((resolve) => {
      for (const [index, server] of servers.entries()) {
        const name = servers.length === 1 ? '' : `${index}/`
        try {
          this.#connections.push(this.#connect(name, server, user, resolve))
        } catch (error) {
          // A setting cannot be used.
          resolve(refusedBecause(messageOf(error)))
        }
      }
    })
  }

  #connect(
    name: string,
    server: ServerAddress,
    user: SipPortUser,
    resolve: (opened: OpenedPort) => void,
  ): DrachtioConnection {
    const { log } = this.#deps
    const address = `${server.host}:${server.port}`
    const own: ConnectionUser = {
      methods: user.methods,
      onConnected: (version) => {
        log('debug', 'connected', { server: address, version })
        void this.#isShared(server, connection).then((isShared) =>
          resolve(isShared ? sharedAt(address) : { kind: 'connected', version }),
        )
      },
      onRefused: (reason) => {
        log('error', 'drachtio-server refuses this connection', { server: address, reason })
        resolve(refusedBecause(reason))
      },
      onEvent: (event, sender) => user.onEvent(event, sender),
      onLost: () => user.onLost(name),
    }
    const connection = new DrachtioConnection(name, server, own, this.#deps)
    return connection
  }

  async #isShared(
    { host, port }: ServerAddress,
    { hostPorts }: DrachtioConnection,
  ): Promise<boolean> {
    const { newToken, schedule } = this.#deps
    if (newToken === undefined) return false
    return this.#soleCheck.isShared({ host, port, hostPorts, newToken, schedule })
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }

  serverFor(nextHop: string, near: string): string | undefined {
    const wanted = this.#phones.of(nextHop) ?? nameIn(near)
    const connection = this.#connections.find(({ name }) => name === wanted)
    return connection?.isReady === true ? connection.name : this.#next()
  }

  /** The next connected server, in turn. */
  #next(): string | undefined {
    const { length } = this.#connections
    for (let tried = 0; tried < length; tried++) {
      this.#turn = (this.#turn + 1) % length
      const connection = this.#connections[this.#turn]
      if (connection?.isReady === true) return connection.name
    }
    return undefined
  }

  request(message: AppMessage, way: RequestWay, sender: SipSender | undefined): boolean {
    const connection = this.#connectionOf(way.dialogId === '' ? way.server : way.dialogId)
    return connection?.request(message, way, sender) === true
  }

  cancel(transactionId: string, message: AppMessage): void {
    this.#connectionOf(transactionId)?.cancel(transactionId, message)
  }

  respond(
    transactionId: string,
    message: AppMessage,
    _isToStranger: boolean,
    sender: SipSender | undefined,
  ): boolean {
    return this.#connectionOf(transactionId)?.respond(transactionId, message, sender) === true
  }

  /** INVITEs of the check have arrived here: they are over. */
  refusalOf({ message, flow }: RequestEvent): number | undefined {
    if (this.#soleCheck.takes(message)) return 480
    const { admit } = this.#deps
    if (admit === undefined) return undefined
    const { address, port, listener } = flow
    const source = { protocol: listener.protocol, address, port }
    return admit(source, message.method, message.get('User-Agent')) ? undefined : 403
  }

  /** Calls to the phone go by the server that has its connection, or its way through a NAT. */
  noteRegistered(transactionId: string, address: string, port: number): void {
    const server = nameIn(transactionId)
    if (server !== undefined) this.#phones.note(address, port, server)
  }

  /** A drachtio-server has no cheaper way than a request. */
  ping(): boolean {
    return false
  }

  /** The connection that a dialog, a transaction or a name belongs to. */
  #connectionOf(id: string): DrachtioConnection | undefined {
    const [first] = this.#connections
    if (this.#connections.length === 1) return first
    const wanted = nameIn(id)
    return this.#connections.find(({ name }) => name === wanted)
  }
}

/** The name of one of several servers, which its ids begin with; undefined: there is none. */
const nameIn = (id: string): string | undefined => /^\d+\//.exec(id)?.[0]

const refusedBecause = (reason: string): OpenedPort => ({
  kind: 'refused',
  reason: `the server of DRACHTIO_URL refuses us: ${reason}`,
})

const sharedAt = (server: string): OpenedPort => ({
  kind: 'refused',
  reason:
    `another application takes calls at ${server} of DRACHTIO_URL; ` +
    'each would get a part of them: give it a server of its own',
})
