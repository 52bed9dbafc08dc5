/**
 * What the server tells an application, as wire payloads. The positions of all fields are named
 * here and nowhere else. `id` is always a fresh id of the server, `commandId` that of the command answered.
 */
import type { AppEvent, CallDetail, MessageFlow } from '../application.ts'
import { isReliable, type Protocol } from '../flow.ts'
import { byteLength } from '../message/message.ts'

/** One event as a payload; `id` is fresh. */
export function encodeEvent(event: AppEvent, id: string): string {
  switch (event.kind) {
    case 'request': {
      const local = event.isNew ? event.flow.listener : undefined
      return encodeRequestEvent({ ...event, id, local, meta: networkMeta(event.came, event) })
    }
    case 'response':
      return encodeResponseEvent({ ...event, id, meta: networkMeta(event.came, event) })
    case 'unsolicited':
      return encodeUnsolicited({ ...event, id, meta: applicationMeta(event) })
    case 'response-sent':
      return encodeResponseSent({ ...event, id, meta: applicationMeta(event) })
    case 'request-sent':
      return encodeRequestSent({ ...event, id, meta: applicationMeta(event) })
    case 'forwarded':
      return encodeProxied(id, event.commandId, networkMeta(event.text, event), event.text)
    case 'forwarding-done':
      return encodeProxyDone(id, event.commandId)
    case 'refused':
      return encodeNok(id, event.commandId, event.problem)
    case 'breach':
      return encodeNo(id, event.commandId, event.problem)
    case 'authenticated':
      return encodeAuthenticated(id, event.commandId, event)
    case 'ok':
      return encodeOk(id, event.commandId)
    case 'pong':
      return encodePong(id, event.commandId)
    case 'detail':
    default:
      return encodeCallDetail(id, event.detail)
  }
}

interface Passage {
  readonly flow: MessageFlow
  readonly now: number
}

const networkMeta = (came: string, { flow, now }: Passage): Meta => ({
  source: 'network',
  bytes: byteLength(came),
  protocol: flow.listener.protocol,
  address: flow.address,
  port: flow.port,
  time: now,
})

/** For UDP our listener; for streams the remote end, as the real server reports it. */
function applicationMeta({ text, flow, now }: Passage & { readonly text: string }): Meta {
  const { listener } = flow
  const isStream = isReliable(listener.protocol)
  return {
    source: 'application',
    bytes: byteLength(text),
    protocol: listener.protocol,
    address: isStream ? flow.address : listener.advertisedHost,
    port: isStream ? flow.port : listener.advertisedPort,
    time: now,
  }
}

/** What describes a SIP message on its way to an application. */
export interface Meta {
  /** `network`: received from a peer. `application`: sent by this server. */
  readonly source: 'network' | 'application'
  /** Size of the SIP message in bytes. */
  readonly bytes: number
  readonly protocol: Protocol
  /** The peer for `network`, our own listener for `application`; IPv6 without brackets. */
  readonly address: string
  readonly port: number
  /** Milliseconds since the epoch, UTC. */
  readonly time: number
}

interface RequestEvent {
  readonly id: string
  readonly meta: Meta
  readonly transactionId: string
  /** Empty outside dialogs. */
  readonly dialogId: string
  /** The listener that took a request which begins something new. */
  readonly local?: { readonly address: string; readonly port: number } | undefined
  readonly text: string
}

/** A request from the network: new, in a dialog, or a CANCEL. */
export function encodeRequestEvent(event: RequestEvent): string {
  const { local } = event
  const receivedOn = local === undefined ? '' : `${local.address}|${local.port}|`
  return (
    `${event.id}|sip|${encodeMeta(event.meta)}|${event.transactionId}|${event.dialogId}|` +
    `${receivedOn}\r\n${event.text}`
  )
}

/** A response from the network, or one made here on its behalf (408, 503). */
export function encodeResponseEvent(event: {
  readonly id: string
  readonly meta: Meta
  readonly transactionId: string
  readonly dialogId: string
  readonly text: string
}): string {
  return (
    `${event.id}|sip|${encodeMeta(event.meta)}|${event.transactionId}|${event.dialogId}|` +
    `\r\n${event.text}`
  )
}

/** A request that the server itself sent in a dialog of the application: a BYE after a timeout. */
export const encodeUnsolicited = (event: {
  readonly id: string
  readonly meta: Meta
  readonly dialogId: string
  readonly text: string
}): string =>
  `${event.id}|sip|${encodeMeta(event.meta)}|unsolicited|${event.dialogId}|\r\n${event.text}`

/** Answer to `authenticate`. Addresses have the form `proto/host:port`. */
export const encodeAuthenticated = (
  id: string,
  commandId: string,
  server: {
    /** Advertised addresses. */
    readonly hostports: readonly string[]
    /** Must begin with `v<major>.<minor>.<patch>`. */
    readonly version: string
    /** Bound addresses. */
    readonly localHostports: readonly string[]
  },
): string =>
  `${id}|response|${commandId}|OK|${server.hostports.join(',')}|${server.version}|` +
  server.localHostports.join(',')

export const encodeOk = (id: string, commandId: string): string => `${id}|response|${commandId}|OK`

export const encodePong = (id: string, commandId: string): string =>
  `${id}|response|${commandId}|OK|pong`

/** The command breaks the protocol: wrong secret, unreadable, not allowed yet. */
export const encodeNo = (id: string, commandId: string, reason: string): string =>
  `${id}|response|${commandId}|NO|${onToken(reason)}`

/** The command was understood, and what it asked for is not possible. */
export const encodeNok = (id: string, commandId: string, reason: string): string =>
  `${id}|response|${commandId}|NOK|${onToken(reason)}`

/** A response was sent for the application; `text` is the response as sent. */
export const encodeResponseSent = (sent: {
  readonly id: string
  readonly commandId: string
  readonly meta: Meta
  readonly transactionId: string
  readonly dialogId: string
  readonly text: string
}): string =>
  `${sent.id}|response|${sent.commandId}|OK|${encodeMeta(sent.meta)}|` +
  `${sent.transactionId}|${sent.dialogId}||Msg sent:|\r\n${sent.text}`

/** A request was sent for the application; its responses will carry `transactionId`. */
export const encodeRequestSent = (sent: {
  readonly id: string
  readonly commandId: string
  readonly meta: Meta
  readonly transactionId: string
  readonly text: string
}): string =>
  `${sent.id}|response|${sent.commandId}|OK|${encodeMeta(sent.meta)}|` +
  `${sent.transactionId}|Msg sent:|\r\n${sent.text}`

/** A final response that a forwarded request got from one of its destinations. */
const encodeProxied = (id: string, commandId: string, meta: Meta, text: string): string =>
  `${id}|response|${commandId}|OK|${encodeMeta(meta)}|||continue\r\n${text}`

/** The last word on a `proxy` command. */
const encodeProxyDone = (id: string, commandId: string): string =>
  `${id}|response|${commandId}|OK|done`

function encodeCallDetail(id: string, detail: CallDetail): string {
  const { kind, source, time, text } = detail
  const what = kind === 'attempt' ? '' : `|${kind === 'start' ? detail.role : detail.reason}`
  return `${id}|cdr:${kind}|${source}|${encodeTime(time)}${what}\r\n${text}`
}

/** A reason may quote what an application or a peer wrote, which must not end the field. */
const onToken = (reason: string): string => reason.replaceAll(/[|\r\n]+/g, ' ')

const millisecondsPerDay = 86_400_000

/** `source|bytes|protocol|address|port|time` */
export const encodeMeta = (meta: Meta): string =>
  `${meta.source}|${meta.bytes}|${meta.protocol}|${meta.address}|${meta.port}|${encodeTime(meta.time)}`

let formattedTime = Number.NaN
let formatted = ''

/**
 * `HH:MM:SS.uuuuuu`, UTC. Under load many messages carry the same millisecond: the last answer is
 * kept, the only state of this file.
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
