/**
 * Bad input over real sockets. Every case is followed by an OPTIONS on the same socket: whatever
 * comes before its answer is the answer to the case, so silence is seen without waiting for it.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { poor, seedFor } from '../sipp/call-case.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

let tollgate: TollgateProcess
let node: SippNode

beforeAll(async () => {
  node = await SippNode.start('nodes/answers.xml')
  tollgate = await TollgateProcess.start(seedFor([node.port]), { LOG_LEVEL: 'debug' })
})

afterAll(async () => {
  await tollgate.stop()
  await node.stop()
})

/** What a socket got; `fenced` resolves with it when the OPTIONS is answered or the peer closes. */
interface Wire {
  send(bytes: Buffer): void
  /** Everything up to the answer to an OPTIONS, without that answer; `closed` when it never comes. */
  fenced(): Promise<string>
  close(): void
}

const fence = 'the-fence'

async function openUdp(): Promise<Wire> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const send = (bytes: Buffer) => socket.send(bytes, tollgate.sipPort, '127.0.0.1')
  return {
    send,
    fenced: async () => {
      send(optionsFrom('UDP', socket.address().port))
      const got: string[] = []
      for (;;) {
        const [bytes] = await once(socket, 'message')
        if (String(bytes).includes(fence)) return got.join('')
        if (!String(bytes).startsWith('SIP/2.0 100 ')) got.push(String(bytes))
      }
    },
    close: () => socket.close(),
  }
}

async function openTcp(): Promise<Wire> {
  const socket = connect(tollgate.sipPort, '127.0.0.1')
  await once(socket, 'connect')
  let got = ''
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => (got += bytes.toString()))
  return {
    send: (bytes) => void socket.write(bytes),
    fenced: async () => {
      socket.write(optionsFrom('TCP', socket.localPort ?? 0))
      const isOver = () => got.includes(fence) || socket.readableEnded || socket.destroyed
      await expect.poll(isOver).toBe(true)
      const answers = got
        .split(/^(?=SIP\/2\.0 )/m)
        .filter((text) => !text.startsWith('SIP/2.0 100 '))
      const before = answers.filter((text) => !text.includes(fence)).join('')
      return got.includes(fence) ? before : `${before}closed`
    },
    close: () => socket.destroy(),
  }
}

const optionsFrom = (protocol: string, port: number): Buffer =>
  request({ method: 'OPTIONS', callId: fence, protocol, port })

interface Parts {
  readonly method?: string
  readonly uri?: string
  readonly version?: string
  readonly callId?: string
  readonly branch?: string
  readonly protocol?: string
  readonly port?: number
  readonly toTag?: string
  readonly headers?: readonly string[]
  readonly body?: string
  /** A header line of these is left out. */
  readonly without?: string
}

let lastNumber = 0

function request(parts: Parts = {}): Buffer {
  const number = ++lastNumber
  const { method = 'INVITE', uri = 'sip:18005551212@127.0.0.1', version = 'SIP/2.0' } = parts
  const { protocol = 'UDP', port = 5060, body = '', toTag } = parts
  const lines = [
    `Via: SIP/2.0/${protocol} 127.0.0.1:${port};rport;branch=z9hG4bK-${parts.branch ?? number}`,
    'Max-Forwards: 70',
    `From: <sip:${poor}@127.0.0.1>;tag=${number}`,
    `To: <sip:18005551212@127.0.0.1>${toTag === undefined ? '' : `;tag=${toTag}`}`,
    `Call-ID: ${parts.callId ?? `bad-${number}`}`,
    `CSeq: 1 ${method}`,
    `Contact: <sip:${poor}@127.0.0.1:${port}>`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  const given = new Set((parts.headers ?? []).map(nameOf))
  const kept = lines.filter((line) => !given.has(nameOf(line)) && nameOf(line) !== parts.without)
  const all = [`${method} ${uri} ${version}`, ...kept, ...(parts.headers ?? [])]
  return Buffer.from(`${all.join('\r\n')}\r\n\r\n${body}`)
}

const nameOf = (line: string): string => line.slice(0, line.indexOf(':'))

const bytes = (...texts: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(texts.map((text) => Buffer.from(text)))

/** A request with these bytes in its Subject. */
function withSubject(subject: Buffer): Buffer {
  const [head = '', tail = ''] = request({ method: 'OPTIONS', headers: ['Subject: #'] })
    .toString()
    .split('#')
  return bytes(head, subject, tail)
}

/** Name, what is sent, and the status it gets; 0 is silence. */
const cases: readonly (readonly [string, () => Buffer, number])[] = [
  ['white space that keeps a binding open', () => Buffer.from('\r\n\r\n'), 0],
  ['a request without Via', () => request({ without: 'Via' }), 0],
  ['a request without Call-ID', () => request({ without: 'Call-ID' }), 400],
  ['a request without CSeq', () => request({ without: 'CSeq' }), 400],
  ['a request without From', () => request({ without: 'From' }), 400],
  ['a request without To', () => request({ without: 'To' }), 400],
  ['an INVITE without Contact', () => request({ without: 'Contact' }), 400],
  [
    'two From headers',
    () => request({ headers: ['From: <sip:a@b>;tag=1', 'From: <sip:c@d>;tag=2'] }),
    400,
  ],
  ['CSeq of another method', () => request({ headers: ['CSeq: 1 BYE'] }), 400],
  ['CSeq that is no number', () => request({ headers: ['CSeq: one INVITE'] }), 400],
  ['SIP/3.0', () => request({ version: 'SIP/3.0' }), 505],
  ['an unsupported scheme', () => request({ uri: 'gopher://127.0.0.1/1' }), 416],
  ['Max-Forwards 0', () => request({ headers: ['Max-Forwards: 0'] }), 483],
  ['Max-Forwards that is no number', () => request({ headers: ['Max-Forwards: many'] }), 400],
  ['an unsupported extension', () => request({ headers: ['Require: telepathy'] }), 420],
  ['an unknown method', () => request({ method: 'FROB' }), 501],
  [
    'a method that is not served',
    () => request({ method: 'SUBSCRIBE', headers: ['Event: dialog'] }),
    405,
  ],
  ['BYE of no call', () => request({ method: 'BYE', toTag: 'gone' }), 481],
  ['BYE without a tag', () => request({ method: 'BYE' }), 481],
  ['re-INVITE of no call', () => request({ toTag: 'gone' }), 481],
  ['CANCEL of nothing', () => request({ method: 'CANCEL' }), 481],
  ['ACK of nothing', () => request({ method: 'ACK', toTag: 'gone' }), 0],
  ['INFO of no call', () => request({ method: 'INFO', toTag: 'gone' }), 481],
  ['bytes that are not UTF-8', () => withSubject(Buffer.from([0xff, 0xfe, 0x80, 0xc3])), 200],
  ['a header of 60,000 bytes', () => withSubject(Buffer.alloc(60_000, 'x')), 200],
]

test.each(cases)('%s by UDP', async (_, message, status) => {
  await judge(await openUdp(), message(), status)
})

test.each(cases)('%s by TCP', async (_, message, status) => {
  const text = message().toString('latin1').replace('SIP/2.0/UDP', 'SIP/2.0/TCP')
  await judge(await openTcp(), Buffer.from(text, 'latin1'), status)
})

async function judge(wire: Wire, message: Buffer, status: number): Promise<void> {
  wire.send(message)
  const got = await wire.fenced()
  wire.close()
  if (status === 0) expect(got.trim()).toBe('')
  else expect(got).toMatch(new RegExp(`^SIP/2\\.0 ${status} `))
}

const whole = (): Buffer => request({ body: 'v=0\r\ns=-\r\n' })

test('a datagram that is cut off anywhere gets 400 or nothing, and begins no call', async () => {
  const before = tollgate.calls().length
  const wire = await openUdp()
  const message = whole()
  for (let length = 1; length < message.length; length += 7) wire.send(message.subarray(0, length))
  const got = await wire.fenced()
  wire.close()
  expect(
    got.split(/^(?=SIP\/2\.0 )/m).filter((text) => text !== '' && !text.startsWith('SIP/2.0 400 ')),
  ).toEqual([])
  expect(tollgate.calls()).toHaveLength(before)
})

test('more than 64 KiB, or a length without end, ends the TCP connection and nothing else', async () => {
  const other = await openTcp()
  const endless = bytes('INVITE sip:a@b SIP/2.0\r\nSubject: ', Buffer.alloc(70_000, 'x'))
  const huge = request({ protocol: 'TCP', headers: ['Content-Length: 99999999'] })
  const wrong = request({ protocol: 'TCP', headers: ['Content-Length: -1'] })
  for (const message of [endless, huge, wrong, Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')]) {
    const wire = await openTcp()
    wire.send(message)
    expect(await wire.fenced()).toMatch(/closed$/)
    wire.close()
  }
  expect(await other.fenced()).toBe('')
  other.close()
})

test('thousands of garbled INVITEs and random bytes: the process goes on as if nothing was', async () => {
  const seed = 20_261_120
  const random = seededRandom(seed)
  const wire = await openUdp()
  const anyByte = () => Math.floor(random() * 256)
  for (let round = 0; round < 3_000; round++) {
    const message = round % 4 === 0 ? Buffer.from(Array.from({ length: 200 }, anyByte)) : whole()
    for (let flips = 0; flips < 1 + (round % 5); flips++)
      message[Math.floor(random() * message.length)] = anyByte()
    wire.send(message)
    if (round % 50 === 49) await wire.fenced()
  }
  await wire.fenced()
  wire.close()
  // What was still an INVITE is refused: the caller has no money. Nothing goes on.
  await expect
    .poll(() => tollgate.calls().every((call) => call.disposition !== 'ANSWERED'))
    .toBe(true)
})

test('all that left no error in the log, a debug line for what was malformed, and no call open', async () => {
  expect(tollgate.faults).toEqual([])
  const isTold = (line: string) => line.includes('"level":"debug"') && line.includes('malformed')
  await expect.poll(() => tollgate.log.some(isTold)).toBe(true)
  expect(tollgate.log.filter((line) => line.includes('uncaught'))).toEqual([])
  // A call that is still open would hold up the end for DRAIN_SECONDS, which are 30.
  const asked = Date.now()
  expect(await tollgate.terminate()).toBe(0)
  expect(Date.now() - asked).toBeLessThan(15_000)
  expect(tollgate.openCalls()).toEqual([])
  expect(tollgate.wallet('paying')).toMatchObject({ debits: 0 })
})
