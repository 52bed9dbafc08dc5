/**
 * The cases of RFC 4475, written anew from its descriptions: one message each, and what this stack
 * does with it where the RFC leaves a choice. The three tables hold every case of the RFC.
 */
export type Verdict =
  /** Read and processed; what it means is asserted beside the table. */
  | 'accepted'
  /** A response that reaches no application. */
  | 'dropped'
  /** The answer of this layer. */
  | { readonly status: number; readonly reason: string }

export interface TortureCase {
  /** Name and section in RFC 4475. */
  readonly name: string
  readonly verdict: Verdict
  readonly text: string
}

/** Lines joined by CRLF; an empty line separates headers from body. */
export const sip = (...lines: readonly string[]): string => lines.join('\r\n')

/** The headers that a case is not about. */
export const usual = (method: string, callId: string): readonly string[] => [
  'Via: SIP/2.0/UDP host5.example.net;branch=z9hG4bK-' + callId,
  'Max-Forwards: 70',
  'From: <sip:caller@example.net>;tag=from-' + callId,
  'To: <sip:user@example.com>',
  `Call-ID: ${callId}.0ha0isndaksdj@192.0.2.1`,
  `CSeq: 8 ${method}`,
]

export const sdp = sip(
  'v=0',
  'o=mhandley 29739 7272939 IN IP4 192.0.2.155',
  's=-',
  'c=IN IP4 192.0.2.155',
  't=0 0',
  'm=audio 49217 RTP/AVP 0 12',
  '',
)
