/**
 * Payloads of the drachtio protocol between an application and its server. The application sees the
 * INVITE that the main process has received, and none of the private headers; what it sends outside
 * dialogs goes to the main process alone. Pure.
 */
import {
  APPLICATION_SECRET,
  isPrivateHeader,
  ORIGINAL_INVITE,
  type OriginalInvite,
  readOriginal,
} from '../../call/application/private-headers.ts'
import { CALL_UUID } from '../../call/sip-headers.ts'

/** Where the requests of an application go. */
export interface WayToMain {
  readonly protocol: 'udp' | 'tcp'
  readonly host: string
  readonly port: number
  /** Proves to the main process, and to the server, who has sent a request. */
  readonly secret: string
}

/** The address at which a worker's server is bound. */
export const loopbackOf = ({ host }: Pick<WayToMain, 'host'>): string =>
  host.includes(':') ? '::1' : '127.0.0.1'

/** A payload of the server, as the application reads it. */
export function shownToApplication(payload: string): string {
  const end = payload.indexOf('\r\n')
  if (end === -1) return payload
  const leader = payload.slice(0, end)
  const message = payload.slice(end + 2)
  if (!message.includes('X-Tollgate-')) return payload
  const { start, lines, body } = partsOf(message)
  const original = readOriginal(valueOf(lines, ORIGINAL_INVITE) ?? '')
  if (original === undefined || !leader.includes('|sip|network|'))
    return `${leader}\r\n${start}\r\n${lines.filter(isShown).join('')}\r\n${body}`
  const headers = originalLines(original, lines)
  return `${withSource(leader, original)}\r\n${start}\r\n${headers}\r\n${body}`
}

interface Parts {
  readonly start: string
  /** Each with its line break. */
  readonly lines: readonly string[]
  readonly body: string
}

function partsOf(message: string): Parts {
  const head = message.indexOf('\r\n\r\n')
  const [start = '', ...lines] = message.slice(0, head === -1 ? undefined : head).split('\r\n')
  return {
    start,
    lines: lines.filter((line) => line !== '').map((line) => `${line}\r\n`),
    body: head === -1 ? '' : message.slice(head + 4),
  }
}

const nameOf = (line: string): string => line.slice(0, line.indexOf(':')).trim()

const isShown = (line: string): boolean => !isPrivateHeader(nameOf(line))

function valueOf(lines: readonly string[], name: string): string | undefined {
  const line = lines.find((each) => nameOf(each).toLowerCase() === name.toLowerCase())
  return line?.slice(line.indexOf(':') + 1).trim()
}

/** They belong to the message on its way from the main process, whatever the caller has written. */
const ofTheWay = new Set(['content-type', 'content-disposition', CALL_UUID.toLowerCase()])

/** The headers as they were received, with those of the body and our call UUID. */
function originalLines({ headers }: OriginalInvite, lines: readonly string[]): string {
  const received = Object.entries(headers).flatMap(([name, value]) =>
    ofTheWay.has(name.toLowerCase()) || /[\r\n]/.test(name + value)
      ? []
      : [`${name}: ${value}\r\n`],
  )
  const ofWay = lines.filter((line) =>
    [...ofTheWay, 'content-length'].includes(nameOf(line).toLowerCase()),
  )
  return [...received, ...ofWay].join('')
}

/** `id|sip|network|bytes|protocol|address|port|…` */
function withSource(leader: string, { protocol, address, port }: OriginalInvite): string {
  const fields = leader.split('|')
  fields.splice(4, 3, protocol, address, String(port))
  return fields.join('|')
}

/** A command of the application, as the server gets it. */
export function toMain(payload: string, way: WayToMain): string {
  const [leader = ''] = payload.split('\r\n', 1)
  const [id = '', type, ...fields] = leader.split('|')
  const [transactionId, dialogId] = fields
  if (type !== 'sip' || transactionId !== '' || dialogId !== '') return payload
  const { start, lines, body } = partsOf(payload.slice(leader.length + 2))
  if (start.startsWith('SIP/2.0 ')) return payload
  const headers = [
    ...lines.filter(
      (line) => !['route', APPLICATION_SECRET.toLowerCase()].includes(nameOf(line).toLowerCase()),
    ),
    `${APPLICATION_SECRET}: ${way.secret}\r\n`,
  ].join('')
  return `${id}|sip|||${hopOf(way)}\r\n${start}\r\n${headers}\r\n${body}`
}

const hopOf = ({ protocol, host, port }: WayToMain): string =>
  `sip:${host}:${port};transport=${protocol}`
