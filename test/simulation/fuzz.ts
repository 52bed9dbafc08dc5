/**
 * Messages of a real call, bent: lines dropped, doubled, swapped, cut, filled with what parsers
 * dislike. Each round throws some at a stack in the middle of a call and then looks whether it
 * still works.
 */
import {
  requestOf,
  responseOf,
  sdp,
  sip,
  targetAt,
  VirtualServer,
  callee,
  header,
} from '../support/sip-core.ts'
import { seededRandom } from '../support/seeded-random.ts'

type Random = () => number

const pick = <T>(random: Random, from: readonly [T, ...T[]]): T =>
  from[Math.floor(random() * from.length)] ?? from[0]

const at = (random: Random, length: number): number => Math.floor(random() * (length + 1))

/** Texts that have broken parsers before. */
const nasty = [
  '',
  ' ',
  '\t',
  '\r\n',
  '\r',
  '\n',
  '\0',
  ',',
  ';',
  ';;',
  '<',
  '>',
  '"',
  '\\',
  '%',
  '%zz',
  '@',
  ':',
  '[::1',
  ']',
  '\u{1F600}',
  '\uDC80',
  '\uFFFF',
  '99999999999999999999',
  '-1',
  '0',
  '4294967296',
  'SIP/2.0',
  'SIP/3.0',
  ';tag=',
  ';branch=',
  'z9hG4bK',
  ';rport',
  '*',
  '__proto__',
  'constructor',
  'x'.repeat(3_000),
  ';a=b'.repeat(500),
] as unknown as readonly [string, ...string[]]

function bend(text: string, random: Random): string {
  const lines = text.split('\r\n')
  const index = Math.floor(random() * lines.length)
  const line = lines[index] ?? ''
  const position = at(random, line.length)
  switch (Math.floor(random() * 7)) {
    case 0:
      lines.splice(index, 1)
      break
    case 1:
      lines.splice(index, 0, line)
      break
    case 2:
      lines[index] = line.slice(0, position)
      break
    case 3:
      lines[index] = line.slice(0, position) + pick(random, nasty) + line.slice(position)
      break
    case 4:
      lines[index] = line.slice(0, line.indexOf(':') + 1) + pick(random, nasty)
      break
    case 5:
      lines.splice(at(random, lines.length), 0, ...lines.splice(index, 1))
      break
    default:
      return text.slice(0, at(random, text.length))
  }
  return lines.join('\r\n')
}

/** One to four of these, one after the other. */
function bentOften(text: string, random: Random): string {
  let bent = text
  for (let count = 1 + Math.floor(random() * 4); count > 0; count--) bent = bend(bent, random)
  return bent
}

/** Every kind of message that a call brings, with the identifiers of a call that is going on. */
function samples(call: string, toTag: string, invite: string, random: Random): readonly string[] {
  const names = { callId: `c${call}`, fromTag: `f${call}` }
  const branch = `z9hG4bK-${call}-${Math.floor(random() * 3)}`
  const methods = [
    'ACK',
    'BYE',
    'CANCEL',
    'INFO',
    'OPTIONS',
    'UPDATE',
    'PRACK',
    'REGISTER',
    'REFER',
  ]
  const extra = [
    'RAck: 1 1 INVITE',
    'Require: 100rel',
    'Refer-To: <sip:x@y>',
    'Session-Expires: 90',
  ]
  return [
    requestOf('INVITE', { ...names, branch, body: sdp, extra: ['Supported: timer, 100rel'] }),
    ...methods.map((method) => requestOf(method, { ...names, branch, toTag, cseq: 2, extra })),
    ...[100, 180, 200, 302, 401, 486, 500, 603].map((status) =>
      responseOf(invite, status, {
        toTag: 'bt',
        extra: ['Contact: <sip:b@192.0.2.20>'],
        body: sdp,
      }),
    ),
  ]
}

const fromApp = (transactionId: string, dialogId: string, random: Random): readonly string[] => [
  `sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', ['Contact: <sip:localhost>'], sdp)}`,
  `sip|${transactionId}|\r\n${sip('SIP/2.0 183 Progress', ['To: <sip:x>;tag=y'], sdp)}`,
  `sip||${dialogId}\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`,
  `sip||${dialogId}\r\n${sip('INVITE sip:placeholder SIP/2.0', [], sdp)}`,
  `sip||${random() < 0.5 ? dialogId : ''}\r\n${sip('ACK sip:b@192.0.2.20 SIP/2.0', [])}`,
]

/**
 * Bends `messages` messages; answers what went wrong: an exception, a table that stays full, a dead
 * call.
 */
export function fuzz(seed: number, messages: number): readonly string[] {
  const random = seededRandom(seed)
  const server = new VirtualServer()
  const complaints: string[] = []
  for (let count = 0; count < messages; count++) {
    const call = String(Math.floor(random() * 5))
    const invite = requestOf('INVITE', { callId: `c${call}`, fromTag: `f${call}`, body: sdp })
    const delivered = server.takeDelivered().at(-1)
    const sent = server.takeSent().at(-1)?.text ?? ''
    const toTag = /;tag=([^;\r]+)/.exec(header(sent, 'To'))?.[1] ?? 'none'
    const request = sent.startsWith('INVITE') ? sent : invite
    const dialogId = delivered?.dialogId ?? `c${call};from-tag=f${call}`
    const isFromApp = random() < 0.3
    const from = isFromApp
      ? fromApp(delivered?.transactionId ?? '', dialogId, random)
      : samples(call, toTag, request, random)
    const message = from[Math.floor(random() * from.length)] ?? ''
    const bent = random() < 0.3 ? message : bentOften(message, random)
    try {
      if (isFromApp) server.command(bent)
      else server.receive(bent, random() < 0.5 ? callee : undefined)
      if (random() < 0.1) server.advance(random() * 5_000)
      settle(server, random)
    } catch (error) {
      complaints.push(`${String(error)} after ${JSON.stringify(bent.slice(0, 2_000))}`)
    }
  }
  return [...complaints, ...aftermath(server)]
}

/** The work of the outside for a core: looks up hosts, closes connections. */
function settle(server: VirtualServer, random: Random): void {
  for (const output of server.other.splice(0)) {
    if (output.kind === 'disconnect') server.reconnect()
    if (output.kind !== 'resolve') continue
    const places = ['192.0.2.20', '192.0.2.21', '192.0.2.22'].map((address) => targetAt(address))
    server.other.push(output)
    server.resolved(output.question.host, places.slice(0, Math.floor(random() * 4)))
  }
}

/** All tables go back to nothing, and the call right after works. */
function aftermath(server: VirtualServer): string[] {
  server.disconnect(server.clientId)
  server.advance(600_000)
  const complaints: string[] = []
  for (const [table, size] of Object.entries(server.core.stats()))
    if (size !== 0) complaints.push(`${size} left in ${table}`)
  server.reconnect()
  server.takeSent()
  server.receive(requestOf('INVITE', { callId: 'after', branch: 'z9hG4bK-after', body: sdp }))
  const transactionId = server.takeDelivered().at(-1)?.transactionId ?? ''
  server.command(`sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', [], sdp)}`)
  const lines = server.takeStartLines().join(', ')
  if (lines !== 'SIP/2.0 100 Trying, SIP/2.0 200 OK') complaints.push(`the call after got ${lines}`)
  return complaints
}
