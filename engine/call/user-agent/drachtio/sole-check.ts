/**
 * Checks that no other application takes calls at a drachtio-server, which distributes calls to all
 * its applications in turn. Its protocol does not show them: INVITEs that we send to the server
 * must come back to us.
 */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Log } from '../../../../schema/contracts/log.ts'
import type { SipListener } from '../../../sip-server/application.ts'
import { hostPort, type SipMessage } from '../../../../schema/sip/index.ts'
import type { Schedule } from '../../../../schema/clock.ts'

/** Calls that come in between may hide another application from one or two of them. */
const KNOCKS = 5

/**
 * The server refuses with this before it knows our handlers; so does an application that drains.
 */
const UNAVAILABLE = 503

const USER = 'tollgate-alone-'

/** Any sender may write such an INVITE. */
const MAX_WARNINGS = 20

/** The server that is checked, and the tools of the check. */
interface Target {
  readonly host: string
  readonly port: number
  readonly hostPorts: readonly string[]
  readonly schedule: Schedule
  readonly newToken: () => string
}

export class SoleCheck {
  readonly #log: Log
  /** Users of INVITEs that have not come yet. */
  readonly #expected = new Set<string>()
  #isWatching = false
  #foreignInvites = 0

  constructor(log: Log) {
    this.#log = log
  }

  /** True: it is an INVITE of this check, ours or another application's, and has to be refused. */
  takes(message: Pick<SipMessage, 'uri' | 'get'>): boolean {
    const { uri } = message
    if (!this.#isWatching || !uri.startsWith(`sip:${USER}`)) return false
    if (this.#expected.delete(uri.slice('sip:'.length, uri.indexOf('@')))) return true
    if (message.get('Max-Forwards') !== '0') return false
    this.#foreignInvites += 1
    if (this.#foreignInvites <= MAX_WARNINGS)
      this.#log('warn', 'another application has registered for calls at this SIP server')
    return true
  }

  /** Whether another application takes calls at the server. */
  async isShared({ host, port, hostPorts, newToken, schedule }: Target): Promise<boolean> {
    this.#isWatching = true
    const server = `${host}:${port}`
    const addresses = udpAddressesOf(host, hostPorts)
    let arrived = 0
    for (let number = 0; number < KNOCKS; number++) {
      const user = `${USER}${newToken()}`
      this.#expected.add(user)
      const status = await knock(addresses, user, schedule)
      const isLost = this.#expected.delete(user)
      if (status === undefined) break
      if (!isLost) arrived += 1
      else if (status !== UNAVAILABLE) {
        this.#log('error', 'another application takes calls at this SIP server', { server })
        return true
      }
    }
    if (arrived === 0)
      this.#log('info', 'it is unknown whether other applications take calls at this SIP server', {
        server,
      })
    return false
  }
}

/**
 * The UDP addresses of the server: by its own name for itself, and by the address at which we reach
 * it.
 */
function udpAddressesOf(host: string, hostPorts: readonly string[]): UdpAddress[] {
  const first = hostPorts.map(parseListener).find(({ protocol }) => protocol === 'udp')
  if (first === undefined) return []
  return first.host === host ? [first] : [{ ...first, host }, first]
}

interface UdpAddress {
  readonly host: string
  readonly port: number
}

const REPEAT_MS = 200
const ANSWER_TIMEOUT_MS = 600
/** The last datagram is sent by then. */
const LINGER_MS = 20

/**
 * Sends one INVITE from a socket of its own, which no application should answer. Returns the final
 * status. Undefined: no address has answered.
 */
async function knock(
  addresses: readonly UdpAddress[],
  user: string,
  schedule: Schedule,
): Promise<number | undefined> {
  for (const address of addresses) {
    const status = await knockAt(address, user, schedule)
    if (status !== undefined) return status
  }
  return undefined
}

function knockAt(
  { host, port }: UdpAddress,
  user: string,
  schedule: Schedule,
): Promise<number | undefined> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const send = (text: string): void => socket.send(text, port, host, () => undefined)
  const uri = `sip:${user}@${hostPort(host, port)}`
  return new Promise((resolve) => {
    let isOver = false
    const end = (status: number | undefined): void => {
      if (isOver) return
      isOver = true
      for (const cancel of timers) cancel()
      resolve(status)
      schedule(() => socket.close(), LINGER_MS)
    }
    const timers = [schedule(() => end(undefined), ANSWER_TIMEOUT_MS)]
    socket.on('error', () => end(undefined))
    socket.on('message', (bytes) => {
      const text = bytes.toString()
      const status = Number(/^SIP\/2\.0 (\d{3}) /.exec(text)?.[1] ?? 0)
      if (isOver || status < 200 || !text.includes(user)) return
      const to = /^To:[ \t]*([^\r]*)/im.exec(text)?.[1] ?? `<${uri}>`
      send(request('ACK', uri, user, to))
      // An application that has taken this INVITE has to drop it.
      if (status < 300) send(request('BYE', uri, user, to))
      end(status)
    })
    socket.bind(0, () => {
      if (isOver) return
      const invite = request('INVITE', uri, user, `<${uri}>`)
      send(invite)
      timers.push(schedule(() => send(invite), REPEAT_MS))
    })
  })
}

/** Max-Forwards 0: an application that checks it refuses the call, and none forwards it. */
function request(method: 'INVITE' | 'ACK' | 'BYE', uri: string, user: string, to: string): string {
  const branch = `z9hG4bK-${method === 'BYE' ? 'bye-' : ''}${user}`
  return [
    `${method} ${uri} SIP/2.0`,
    `Via: SIP/2.0/UDP tollgate.invalid;rport;branch=${branch}`,
    'Max-Forwards: 0',
    `From: <sip:${user}@tollgate.invalid>;tag=${user}`,
    `To: ${to}`,
    `Call-ID: ${user}`,
    `CSeq: ${method === 'BYE' ? 2 : 1} ${method}`,
    `Contact: <sip:${user}@tollgate.invalid>`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
}

/**
 * Reads a listener of a drachtio-server, such as `udp/192.0.2.1:5060` or `tcp/[2001:db8::1]:5060`.
 */
export function parseListener(text: string): SipListener {
  const [, protocol = 'udp', host = text, port = '5060'] =
    /^(\w+)\/\[?([^\]]*)\]?:(\d+)$/.exec(text) ?? []
  return { protocol, host, port: Number(port) }
}
