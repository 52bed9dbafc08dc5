/** The drachtio protocol from the application's side: commands are written, what the server tells is read. */
import type { AppCommand, AppEvent, AppMessage, MessageFlow } from '../application.ts'
import type { Protocol } from '../flow.ts'
import { contentLengthLine } from '../message/decode.ts'
import { parseAppMessage } from '../message/parse.ts'

/** A `proxy` command is not written: call control forwards by legs of its own. */
export function encodeCommand({ id, command }: AppCommand): string {
  switch (command?.kind) {
    case 'authenticate':
      return `${id}|authenticate|${command.secret}|${command.tags.join(',')}`
    case 'route':
      return `${id}|route|${command.verb}`
    case 'remove-route':
      return `${id}|remove_route|${command.verb}`
    case 'sip': {
      const { transactionId, dialogId, routeUrl, message } = command
      const nextHop = routeUrl === '' ? '' : `|${routeUrl}`
      return `${id}|sip|${transactionId}|${dialogId}${nextHop}\r\n${message ? textOf(message) : ''}`
    }
    case 'ping':
    default:
      return `${id}|ping`
  }
}

function textOf(message: AppMessage): string {
  const { kind, method, uri, status, reason, body } = message
  let text = kind === 'request' ? `${method} ${uri} SIP/2.0\r\n` : `SIP/2.0 ${status} ${reason}\r\n`
  for (const [name, value] of message.entries()) text += `${name}: ${value}\r\n`
  return text + contentLengthLine(body) + body
}

/** Undefined: it is nothing that an application waits for, or it cannot be read. */
export function decodeEvent(payload: string, now: number): AppEvent | undefined {
  const end = payload.indexOf('\r\n')
  const tokens = payload.slice(0, end === -1 ? undefined : end).split('|')
  const text = end === -1 ? '' : payload.slice(end + 2)
  if (tokens[1] === 'sip') return decodeSip(tokens.slice(2), text, now)
  return tokens[1] === 'response' ? decodeReply(tokens.slice(2), text, now) : undefined
}

/** `source|bytes|protocol|address|port|time|transaction|dialog|…` */
function decodeSip(fields: readonly string[], text: string, now: number): AppEvent | undefined {
  const message = parseAppMessage(text)
  if (message === undefined) return undefined
  const [source, , , , , , transactionId = '', dialogId = ''] = fields
  const flow = flowOf(fields)
  if (source !== 'network')
    return transactionId === 'unsolicited'
      ? { kind: 'unsolicited', dialogId, text, message, flow, now }
      : undefined
  const isNew = dialogId === ''
  const passed = { transactionId, dialogId, text, message, came: text, flow, now }
  return message.kind === 'request'
    ? { kind: 'request', ...passed, isNew }
    : { kind: 'response', ...passed }
}

/** `command|OK|…`, `command|NOK|reason`, `command|NO|reason` */
function decodeReply(fields: readonly string[], text: string, now: number): AppEvent | undefined {
  const [commandId = '', verdict, first = '', version = '', localHostports = ''] = fields
  if (verdict === 'NO') return { kind: 'breach', commandId, problem: first }
  if (verdict !== 'OK') return { kind: 'refused', commandId, problem: first || 'request failed' }
  if (text !== '') return decodeSent(commandId, fields.slice(2), text, now)
  if (first === 'pong') return { kind: 'pong', commandId }
  if (!first.includes('/')) return { kind: 'ok', commandId }
  const [hostports, local] = [first.split(','), localHostports.split(',')]
  return { kind: 'authenticated', commandId, hostports, version, localHostports: local }
}

function decodeSent(
  commandId: string,
  fields: readonly string[],
  text: string,
  now: number,
): AppEvent | undefined {
  const message = parseAppMessage(text)
  if (message === undefined) return undefined
  const [, , , , , , transactionId = '', dialogId = ''] = fields
  const sent = { commandId, transactionId, text, flow: flowOf(fields), now }
  if (message.kind === 'response')
    return { kind: 'response-sent', ...sent, dialogId, localTag: message.toTag }
  const { method, uri, callId, cseq } = message
  if (method === 'ACK' || method === 'CANCEL')
    return { kind: 'request-sent', ...sent, sent: undefined }
  const from = message.get('From') ?? ''
  const own = { method, uri, callId, from, cseq: cseq?.number ?? 0 }
  return { kind: 'request-sent', ...sent, sent: own }
}

function flowOf(fields: readonly string[]): MessageFlow {
  const [, , transport = '', address = '', portText = ''] = fields
  const protocol = protocols.find((known) => known === transport.toLowerCase()) ?? 'udp'
  const port = Number(portText) || 5_060
  const own = { address, port, advertisedHost: address, advertisedPort: port }
  return { address, port, listener: { protocol, ...own } }
}

const protocols: readonly Protocol[] = ['udp', 'tcp', 'tls', 'ws', 'wss']
