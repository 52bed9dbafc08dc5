/**
 * Checks that no other application takes calls at a drachtio-server. Its protocol does not tell, and it
 * distributes calls to all in turn: INVITEs that we send to it must come to us.
 */
import type { Log } from '../../../../schema/contracts/log.ts'
import type { Schedule } from '../../deadlines.ts'
import type { SipRequest } from '../../signalling.ts'
import type { Welcome } from '../server-link.ts'
import { parseListener } from '../listener.ts'
import { knock, type Place } from './knock.ts'

/** Calls that come in between may hide another application from one or two of them. */
const KNOCKS = 5

/** The server refuses with this before it knows our handlers; so does an application that drains. */
const UNAVAILABLE = 503

const USER = 'tollgate-alone-'

/** Any sender may write such an INVITE. */
const MAX_WARNINGS = 20

/** A drachtio server elsewhere. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly secret: string
  /** Undefined: without TLS. */
  readonly tls?: TlsTrust | undefined
}

/** Which authorities the server's certificate must be signed by. */
export interface TlsTrust {
  /** PEM file of one authority or several; undefined: those that Node.js knows. */
  readonly caFile: string | undefined
}

/** Another application takes calls there. */
export interface SharedServer {
  readonly kind: 'shared'
  readonly server: string
}

type Target = ServerAddress & {
  readonly schedule: Schedule
  readonly newToken?: () => string
}

export class SoleCheck {
  readonly #log: Log
  /** Users of INVITEs that have not come yet. */
  readonly #expected = new Set<string>()
  #isWatching = false
  #heard = 0

  constructor(log: Log) {
    this.#log = log
  }

  /** True: it is such an INVITE, ours or another application's, which is over when it is refused. */
  takes({ uri, headers }: SipRequest): boolean {
    if (!this.#isWatching || !uri.startsWith(`sip:${USER}`)) return false
    if (this.#expected.delete(uri.slice('sip:'.length, uri.indexOf('@')))) return true
    if (headers['max-forwards'] !== '0') return false
    this.#heard += 1
    if (this.#heard <= MAX_WARNINGS)
      this.#log('warn', 'another application has asked for calls at our SIP server')
    return true
  }

  async check(
    { host, port, newToken, schedule }: Target,
    connected: Extract<Welcome, { kind: 'connected' }>,
  ): Promise<Welcome | SharedServer> {
    if (newToken === undefined) return connected
    this.#isWatching = true
    const server = `${host}:${port}`
    const places = placesOf(host, connected.hostPorts)
    let arrived = 0
    for (let number = 0; number < KNOCKS; number++) {
      const user = `${USER}${newToken()}`
      this.#expected.add(user)
      const status = await knock(places, user, schedule)
      const isLost = this.#expected.delete(user)
      if (status === undefined) break
      if (!isLost) arrived += 1
      else if (status !== UNAVAILABLE) {
        this.#log('error', 'another application takes calls at this SIP server', { server })
        return { kind: 'shared', server }
      }
    }
    if (arrived === 0)
      this.#log('info', 'whether others take calls at this SIP server is not known', { server })
    return connected
  }
}

/** Its listeners for UDP as it says they are reached, and as we reach the server itself. */
function placesOf(host: string, hostPorts: readonly string[]): Place[] {
  const first = hostPorts.map(parseListener).find(({ protocol }) => protocol === 'udp')
  if (first === undefined) return []
  return first.host === host ? [first] : [{ ...first, host }, first]
}
