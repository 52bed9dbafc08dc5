/**
 * Events as wire payloads for an application. The positions of all fields are defined here alone.
 * `id` is a fresh id of the server, `commandId` that of the command answered.
 */
import type {
  AppEvent,
  CallDetail,
  MessageFlow,
  RequestEvent,
  ResponseEvent,
} from '../application.ts'
import { isReliable } from '../flow.ts'
import { type Protocol, byteLength } from '../../../schema/sip/message.ts'

/** One event as a payload; `id` is fresh. */
export function encodeEvent(event: AppEvent, id: string): string {
  switch (event.kind) {
    case 'request': {
      const { address, port } = event.flow.listener
      // The listener matters to a request that begins something new.
      const receivedOn = event.isNew ? `${address}|${port}|` : ''
      return `${id}|sip|${received(event)}${receivedOn}\r\n${event.text}`
    }
    case 'response':
      return `${id}|sip|${received(event)}\r\n${event.text}`
    case 'unsolicited':
      return `${id}|sip|${sentMeta(event)}|unsolicited|${event.dialogId}|\r\n${event.text}`
    case 'response-sent': {
      const { transactionId, dialogId, text } = event
      const fields = `${sentMeta(event)}|${transactionId}|${dialogId}||Msg sent:|`
      return `${answer(event, id)}OK|${fields}\r\n${text}`
    }
    case 'request-sent': {
      const fields = `${sentMeta(event)}|${event.transactionId}|Msg sent:|`
      return `${answer(event, id)}OK|${fields}\r\n${event.text}`
    }
    case 'forwarded':
      return `${answer(event, id)}OK|${receivedMeta(event.text, event)}|||continue\r\n${event.text}`
    case 'forwarding-done':
      return `${answer(event, id)}OK|done`
    case 'refused':
      return `${answer(event, id)}NOK|${onToken(event.problem)}`
    case 'breach':
      return `${answer(event, id)}NO|${onToken(event.problem)}`
    case 'authenticated': {
      const { hostports, version, localHostports } = event
      return `${answer(event, id)}OK|${hostports.join(',')}|${version}|${localHostports.join(',')}`
    }
    case 'ok':
      return `${answer(event, id)}OK`
    case 'pong':
      return `${answer(event, id)}OK|pong`
    case 'detail':
    default:
      return encodeCallDetail(id, event.detail)
  }
}

/**
 * The first fields of an answer to a command; `OK`, `NO` (a breach of the protocol) or `NOK` (not
 * possible) follows.
 */
const answer = ({ commandId }: { readonly commandId: string }, id: string): string =>
  `${id}|response|${commandId}|`

interface Passage {
  readonly flow: MessageFlow
  readonly now: number
}

function received(event: RequestEvent | ResponseEvent): string {
  return `${receivedMeta(event.came, event)}|${event.transactionId}|${event.dialogId}|`
}

const receivedMeta = (came: string, { flow, now }: Passage): string =>
  meta('network', came, flow.listener.protocol, flow, now)

/** Our listener for UDP, the remote end for streams: so drachtio-server reports it. */
function sentMeta({ text, flow, now }: Passage & { readonly text: string }): string {
  const { protocol, advertisedHost, advertisedPort } = flow.listener
  const end = isReliable(protocol) ? flow : { address: advertisedHost, port: advertisedPort }
  return meta('application', text, protocol, end, now)
}

/** `source|bytes|protocol|address|port|time`; IPv6 without brackets. */
const meta = (
  source: 'network' | 'application',
  message: string,
  protocol: Protocol,
  { address, port }: { readonly address: string; readonly port: number },
  now: number,
): string => `${source}|${byteLength(message)}|${protocol}|${address}|${port}|${encodeTime(now)}`

function encodeCallDetail(id: string, detail: CallDetail): string {
  const { kind, source, time, text } = detail
  const what = kind === 'attempt' ? '' : `|${kind === 'start' ? detail.role : detail.reason}`
  return `${id}|cdr:${kind}|${source}|${encodeTime(time)}${what}\r\n${text}`
}

/** A reason may quote what an application or a peer wrote, which must not end the field. */
const onToken = (reason: string): string => reason.replaceAll(/[|\r\n]+/g, ' ')

const millisecondsPerDay = 86_400_000

let formattedTime = Number.NaN
let formatted = ''

/**
 * `HH:MM:SS.uuuuuu`, UTC. Under load many messages carry the same millisecond: the last text is
 * cached, the only state of this file.
 */
function encodeTime(time: number): string {
  if (time === formattedTime) return formatted
  const ofDay = time % millisecondsPerDay
  const hours = Math.floor(ofDay / 3_600_000)
  const minutes = Math.floor(ofDay / 60_000) % 60
  const seconds = Math.floor(ofDay / 1_000) % 60
  const micros = Math.floor((ofDay % 1_000) * 1_000)
  formattedTime = time
  formatted = `${pad(hours, 2)}:${pad(minutes, 2)}:${pad(seconds, 2)}.${pad(micros, 6)}`
  return formatted
}

const pad = (value: number, width: number): string => String(value).padStart(width, '0')
