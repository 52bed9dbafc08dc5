/** Messages for the tests of this folder, as small as they can be. */
import type { SipMessage } from '../../../schema/sip/message.ts'
import { parseMessage } from '../../../schema/sip/parse.ts'
import { Params } from '../../../schema/sip/headers.ts'

export const lines = (...all: readonly string[]): string => all.join('\r\n')

/** An INVITE with the mandatory headers; more header lines may follow, and a body. */
export const invite = (extra: readonly string[] = [], body = ''): string =>
  lines(
    'INVITE sip:bob@example.com SIP/2.0',
    'Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa1;rport',
    'Max-Forwards: 70',
    'From: "Alice" <sip:alice@example.com>;tag=f1',
    'To: <sip:bob@example.com>',
    'Call-ID: c1@192.0.2.1',
    'CSeq: 1 INVITE',
    ...extra,
    '',
    body,
  )

/** The text as a message; a malformed one fails the test with its reason. */
export function read(text: string): SipMessage {
  const message = parseMessage(text)
  if (message.kind === 'malformed') throw new Error(message.reason)
  return message
}

export function paramsOf(entries: readonly (readonly [string, string])[]): Params {
  const params = new Params()
  for (const [name, value] of entries) params.add(name, value)
  return params
}
