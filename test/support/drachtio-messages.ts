/** The wire protocol of drachtio as text, for a `DrachtioPeer`. */

/** What the application wanted sent. */
export interface Command {
  readonly id: string
  /** `authenticate`, `route`, `sip`, … */
  readonly type: string
  /** What it is about: a secret, a verb, or the transaction that a response or a CANCEL belongs to. */
  readonly subject: string
  /** Empty outside dialogs. */
  readonly dialogId: string
  /** Empty for control messages. */
  readonly sip: string
  readonly method: string
  /** 0 for a request. */
  readonly status: number
}

export const sdp =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'

export const dialogOf = (callId: string): string => `${callId};from-tag=caller`

export const meta = (source: string, text: string): string =>
  `${source}|${text.length}|udp|127.0.0.1|5080|18:21:07.125543`

export function request(
  method: string,
  callId: string,
  cseq: number,
  lines: readonly string[],
  body = '',
): string {
  return [
    `${method} sip:18005551212@198.51.100.10 SIP/2.0`,
    ...lines,
    'From: <sip:15550001111@127.0.0.1:5080>;tag=caller',
    `To: <sip:18005551212@198.51.100.10>${method === 'INVITE' || method === 'CANCEL' ? '' : ';tag=ours'}`,
    `Call-ID: ${callId}`,
    `CSeq: ${cseq} ${method}`,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

export const headerOf = (text: string, name: string): string =>
  new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)`, 'i').exec(text)?.[1] ?? ''

export function parse(payload: string): Command {
  const end = payload.indexOf('\r\n')
  const leader = payload.slice(0, end === -1 ? undefined : end)
  const [id = '', type = '', subject = '', dialogId = ''] = leader.split('|')
  const sip = end === -1 ? '' : payload.slice(end + 2)
  const [first = '', second = ''] = sip.split(' ')
  const isResponse = first.startsWith('SIP/')
  return {
    id,
    type,
    subject,
    dialogId,
    sip,
    method: isResponse ? '' : first,
    status: isResponse ? Number(second) : 0,
  }
}
