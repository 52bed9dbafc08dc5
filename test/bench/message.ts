import { parseMessage, checkRequest } from '../../engine/sip-server/message/parse.ts'
import { StreamFramer } from '../../engine/sip-server/message/stream-framer.ts'

export const describe = 'SIP messages: parse, check, frame; CPU µs per message'

/** 14 headers, 289 bytes of SDP, about 900 bytes: the INVITE that a carrier sends. */
const invite = [
  'INVITE sip:+18005551212@sbc.example.com:5060;user=phone SIP/2.0',
  'Via: SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK-524287-1---8c5f3d9b1e7a2c4d',
  'Max-Forwards: 70',
  'Contact: <sip:alice@203.0.113.7:5060>',
  'To: <sip:+18005551212@sbc.example.com>',
  'From: "Alice" <sip:+15125550100@203.0.113.7>;tag=7a2c4d1e',
  'Call-ID: 83cf8b2e-59a4-4d7f-9a63-2b0a8bb0f6d1',
  'CSeq: 1 INVITE',
  'Allow: INVITE, ACK, CANCEL, BYE, NOTIFY, REFER, MESSAGE, OPTIONS, INFO, SUBSCRIBE',
  'Supported: replaces, timer, 100rel',
  'Session-Expires: 1800',
  'User-Agent: carrier/1.0',
  'Content-Type: application/sdp',
  'Content-Length: 289',
  '',
  'v=0\r\no=- 1697041234 1697041234 IN IP4 203.0.113.7\r\ns=-\r\nc=IN IP4 203.0.113.7\r\nt=0 0\r\n' +
    'm=audio 40000 RTP/AVP 0 8 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n' +
    'a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n',
].join('\r\n')

/** The same with a body of exactly the size announced. */
const datagram = Buffer.from(invite + 'a=sendrecv\r\n'.repeat(9)).subarray(
  0,
  invite.indexOf('\r\n\r\n') + 4 + 289,
)

export async function run(): Promise<void> {
  const framer = new StreamFramer()
  const pair = Buffer.concat([datagram, datagram])
  const work: readonly (readonly [string, () => unknown])[] = [
    ['parse', () => parseMessage(datagram.toString())],
    ['parse, via, call-id, cseq, tags', () => read(datagram.toString())],
    ['the same and checkRequest', () => readAndCheck(datagram.toString())],
    ['two messages off a stream', () => framer.receive(pair)],
  ]
  console.log(`INVITE of ${datagram.length} bytes`)
  for (const [name, once] of work) console.log(`${cpuMicros(once).toFixed(2).padStart(8)}  ${name}`)
}

function read(text: string) {
  const message = parseMessage(text)
  if (message.kind === 'malformed') return 0
  const { via, callId, cseq, fromTag, toTag } = message
  return (
    (via?.branch.length ?? 0) + callId.length + (cseq?.number ?? 0) + fromTag.length + toTag.length
  )
}

function readAndCheck(text: string) {
  const message = parseMessage(text)
  return message.kind === 'malformed' ? message : checkRequest(message, 'udp')
}

/** Best of several rounds: other processes only ever make it slower. */
function cpuMicros(once: () => unknown): number {
  const rounds = 20_000
  let best = Infinity
  for (let round = 0; round < 8; round++) {
    const before = process.cpuUsage()
    for (let count = 0; count < rounds; count++) once()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / rounds)
  }
  return best
}
