/**
 * The payloads of a drachtio server by the names of their fields. It shares no code with the server
 * that writes them.
 */

/** Fields that a payload does not have are empty. */
export interface WireEvent {
  /**
   * `sip`: a message; `response`: the reply to a command; `cdr:attempt`, `cdr:start`, `cdr:stop`.
   */
  readonly kind: string
  /** The command that a reply is for, and `OK`, `NO` or `NOK`. */
  readonly commandId: string
  readonly verdict: string
  /** Why not; or `pong`, `continue`, `done`; or why a call has ended. */
  readonly reason: string
  /** `network`: received; `application`: sent. */
  readonly source: string
  readonly bytes: string
  readonly protocol: string
  readonly address: string
  readonly port: string
  readonly time: string
  readonly transactionId: string
  readonly dialogId: string
  /** The listener that took a request which begins something new. */
  readonly localAddress: string
  readonly localPort: string
  readonly sip: string
}

export function readEvent(payload: string): WireEvent {
  const end = payload.indexOf('\r\n')
  const [, kind = '', ...fields] = payload.slice(0, end === -1 ? undefined : end).split('|')
  const event = { ...empty, kind, sip: end === -1 ? '' : payload.slice(end + 2) }
  if (kind === 'sip') {
    const [localAddress = '', localPort = ''] = fields.slice(8)
    return { ...event, ...aboutMessage(fields), localAddress, localPort }
  }
  if (kind === 'response') {
    const [commandId = '', verdict = '', ...rest] = fields
    if (event.sip === '') return { ...event, commandId, verdict, reason: rest[0] ?? '' }
    return { ...event, ...aboutMessage(rest), commandId, verdict, reason: rest[8] ?? '' }
  }
  const [source = '', time = '', reason = ''] = fields
  return { ...event, source, time, reason }
}

const empty: WireEvent = {
  kind: '',
  commandId: '',
  verdict: '',
  reason: '',
  source: '',
  bytes: '',
  protocol: '',
  address: '',
  port: '',
  time: '',
  transactionId: '',
  dialogId: '',
  localAddress: '',
  localPort: '',
  sip: '',
}

function aboutMessage(fields: readonly string[]) {
  const [source = '', bytes = '', protocol = '', address = '', port = '', time = ''] = fields
  const [transactionId = '', next = ''] = fields.slice(6)
  // The reply for a request that was sent has no dialog.
  const dialogId = next === 'Msg sent:' ? '' : next
  return { source, bytes, protocol, address, port, time, transactionId, dialogId }
}
