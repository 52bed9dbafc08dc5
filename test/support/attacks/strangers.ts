/** What needs no credential at all. */
import { createSocket, type Socket } from 'node:dgram'
import { connect, type Socket as Stream } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { DigestPhone } from '../digest-phone.ts'
import { eventually } from '../waiting.ts'
import { type Attack, domain, repeatUntil, type World } from './world.ts'

interface Forger {
  readonly socket: Socket
  readonly address: string
  readonly port: number
}

async function forgerAt(address: string): Promise<Forger> {
  const socket = createSocket('udp4')
  socket.on('message', () => undefined)
  await new Promise<void>((resolve) => socket.bind(0, address, resolve))
  return { socket, address, port: socket.address().port }
}

let lastCall = 0

function invite({ socket, address, port }: Forger, sipPort: number, userAgent = 'x'): void {
  const id = `stranger-${(lastCall += 1)}`
  const text = [
    `INVITE sip:1900555${lastCall}@127.0.0.1:${sipPort} SIP/2.0`,
    `Via: SIP/2.0/UDP ${address}:${port};branch=z9hG4bK${id};rport`,
    'Max-Forwards: 70',
    `From: <sip:x@stranger.example>;tag=${id}`,
    `To: <sip:1900@127.0.0.1>`,
    `Call-ID: ${id}`,
    'CSeq: 1 INVITE',
    `User-Agent: ${userAgent}`,
    `Contact: <sip:x@${address}:${port}>`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
  socket.send(text, sipPort, '127.0.0.1')
}

const logBytes = ({ tollgate }: World): number => tollgate.log.join('\n').length
const rows = ({ tollgate }: World): number =>
  tollgate.query("SELECT 1 FROM cdr WHERE denial_code = 'unknown_source'").length

const floods: Attack = {
  name: "strangers' floods",
  guarantee: 'calls of unknown sources make ten records and a bounded log a minute',
  async run(world, until) {
    const forgers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => forgerAt(`127.0.3.${index + 1}`)),
    )
    const before = { rows: rows(world), log: logBytes(world), at: performance.now() }
    let calls = 0
    await repeatUntil(until, async () => {
      for (const forger of forgers) invite(forger, world.tollgate.sipPort, 'friendly-scanner')
      for (const forger of forgers) invite(forger, world.tollgate.sipPort)
      calls += 2 * forgers.length
      await sleep(100)
    })
    await sleep(500)
    for (const { socket } of forgers) socket.close()
    const minutes = Math.ceil((performance.now() - before.at) / 60_000) + 1
    const made = { rows: rows(world) - before.rows, log: logBytes(world) - before.log }
    const breaches: string[] = []
    if (made.rows > 10 * minutes) breaches.push(`${made.rows} records`)
    if (made.log > 32_768 * minutes) breaches.push(`${made.log} bytes of log`)
    return { tried: `${calls} INVITEs: ${made.rows} records, ${made.log} bytes of log`, breaches }
  },
}

const forgedBans: Attack = {
  name: 'forged bans',
  guarantee: "what bears a registered phone's address neither bans it nor shuts it out",
  async run({ tollgate }, until) {
    const account = { user: '101', domain, password: 'secret-101' }
    // Not trusted: an address next to the platform's.
    const listener = { ...tollgate.listener(), advertisedHost: '127.0.4.1' }
    const phone = await DigestPhone.open(listener, account)
    const forger = await forgerAt('127.0.4.1')
    const breaches: string[] = []
    let calls = 0
    try {
      if ((await phone.signOn()).status !== 200) breaches.push('the phone could not register')
      await repeatUntil(until, async () => {
        for (let count = 0; count < 50; count++) invite(forger, tollgate.sipPort)
        calls += 50
        const answer = await phone.signOn().catch(() => undefined)
        if (answer?.get('WWW-Authenticate').includes('stale=true')) phone.learn(answer)
        else if (answer?.status !== 200) breaches.push(`REGISTER: ${answer?.status ?? 'silence'}`)
      })
    } finally {
      phone.close()
      forger.socket.close()
    }
    return { tried: `${calls} INVITEs with the address of a phone`, breaches }
  },
}

const isOpen = (socket: Stream): boolean => !socket.destroyed && !socket.readableEnded

const slowConnections: Attack = {
  name: 'slow connections',
  guarantee: 'one address takes 256 places of a listener at most, and others are served',
  async run({ tollgate, api, adminKey }, until) {
    const breaches: string[] = []
    let tries = 0
    await repeatUntil(until, async () => {
      const open = (port: number, text: string): Stream[] =>
        Array.from({ length: 400 }, () => {
          const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.5.1' })
          socket.on('error', () => undefined)
          socket.on('connect', () => socket.write(text))
          return socket.resume()
        })
      const http = open(tollgate.apiPort, 'GET / HTTP/1.1\r\nX-Slow: ')
      const sip = open(tollgate.sipPort, 'OPTIONS sip:x SIP/2.0\r\nVia: ')
      tries += http.length + sip.length
      // A busy machine takes a while to accept them; the listener's own patience, which ends all, is 10 s.
      for (const [name, sockets] of Object.entries({ http, sip }))
        await eventually(() => {
          const held = sockets.filter(isOpen).length
          if (held > 256) throw new Error(`${name}: ${held} connections`)
        }, 8_000).catch((error: unknown) => breaches.push(String(error)))
      const { status } = await api('GET', '/api/v1/health', adminKey)
      if (status !== 200) breaches.push(`the API answers ${status}`)
      for (const socket of [...http, ...sip]) socket.destroy()
      await sleep(100)
    })
    return { tried: `${tries} connections that say little`, breaches }
  },
}

const mutations: Attack = {
  name: 'mutated messages',
  guarantee: 'no datagram ends the process, or makes an error that nothing caught',
  async run(world, until) {
    const { tollgate, random, api, adminKey } = world
    const faults = tollgate.faults.length
    const forger = await forgerAt('127.0.0.1')
    let sent = 0
    await repeatUntil(until, async () => {
      for (let count = 0; count < 100; count++) {
        const bytes = Buffer.from(template(forger, (sent += 1)))
        const changes = 1 + Math.floor(random() * 6)
        for (let change = 0; change < changes; change++)
          bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
        const cut = random() < 0.2 ? Math.floor(random() * bytes.length) : bytes.length
        forger.socket.send(bytes.subarray(0, cut), tollgate.sipPort, '127.0.0.1')
      }
      await sleep(20)
    })
    forger.socket.close()
    const breaches = tollgate.faults.slice(faults).map((line) => line.slice(0, 200))
    const { status } = await api('GET', '/api/v1/health', adminKey)
    if (status !== 200) breaches.push(`the API answers ${status}`)
    return { tried: `${sent} messages with a few bytes changed`, breaches }
  },
}

const template = ({ port }: Forger, count: number): string =>
  [
    `${['INVITE', 'REGISTER', 'OPTIONS', 'SUBSCRIBE'][count % 4]} sip:1555@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bKm${count};rport`,
    'Max-Forwards: 70',
    `From: "A" <sip:15550009999@127.0.0.1>;tag=m${count}`,
    'To: <sip:1555@127.0.0.1>',
    `Call-ID: mutated-${count}`,
    `CSeq: 1 ${['INVITE', 'REGISTER', 'OPTIONS', 'SUBSCRIBE'][count % 4]}`,
    `Contact: <sip:x@127.0.0.1:${port}>`,
    'Authorization: Digest username="101", realm="acme.example", nonce="x", uri="sip:x", response="y"',
    'Route: <sip:127.0.0.1;lr>',
    'Content-Type: application/sdp',
    'Content-Length: 4',
    '',
    'v=0\r\n',
  ].join('\r\n')

/** What a stranger may send, in few bytes, to be answered in many. */
function probes(host: string, port: number, sipPort: number): readonly string[] {
  const id = `probe-${(lastCall += 1)}`
  const message = (start: string, headers: readonly string[] = [], extra = ''): string =>
    [
      `${start} SIP/2.0`,
      `v:SIP/2.0/UDP ${host}:${port};branch=z9hG4bK${id}${extra.length};rport`,
      `f:<sip:101@${domain}>;tag=1`,
      `t:<sip:102@${domain}>${extra}`,
      `i:${id}`,
      `CSeq:1 ${start.split(' ', 1)[0]}`,
      ...headers,
      'l:0',
      '',
      '',
    ].join('\r\n')
  const uri = `sip:102@${domain}`
  const contact = `m:<sip:101@${host}:${port}>`
  const credentials = (name: string): string =>
    `${name}: Digest username="101",realm="${domain}",nonce="x",uri="${uri}",response="y"`
  const methods = ['SUBSCRIBE', 'NOTIFY', 'REFER', 'INFO', 'UPDATE', 'PRACK', 'CANCEL', 'BYE']
  return [
    message(`INVITE ${uri}`, [contact]),
    message(`INVITE ${uri}`, [contact, credentials('Proxy-Authorization')]),
    message(`INVITE ${uri}`),
    message('INVITE mailto:x', [contact]),
    message(`INVITE ${uri}`, [contact, 'Max-Forwards: 0']),
    message(`INVITE ${uri}`, [contact]).replace(
      `f:<sip:101@${domain}>`,
      'f:<sip:x@stranger.example>',
    ),
    message(`REGISTER sip:${domain}`, [contact]),
    message(`REGISTER sip:${domain}`, [contact, 'User-Agent: Linphone/5']),
    message(`REGISTER sip:${domain}`, [contact, credentials('Authorization')]),
    message(`REGISTER sip:${domain}`, ['Require: gruu']),
    message(`OPTIONS sip:127.0.0.1:${sipPort}`),
    message('OPTIONS sip:x', ['Require: a, b, c, d, e']),
    message(`MESSAGE ${uri}`),
    message(`PUBLISH ${uri}`),
    message(`PUBLISH ${uri}`, ['Event: presence']),
    message('X s:'),
    message(`BYE ${uri}`, [], ';tag=2'),
    message(`INVITE ${uri}`, [contact], ';tag=2'),
    message('INVITE', [contact]),
    `INVITE ${uri} SIP/2.0\r\nv:SIP/2.0/UDP ${host}:${port};branch=z9hG4bK${id}\r\n\r\n`,
    ...methods.map((method) => message(`${method} ${uri}`, [contact])),
  ]
}

const amplification: Attack = {
  name: 'amplification',
  guarantee: 'an address gets at most twice the bytes that were sent in its name',
  async run({ tollgate }, until) {
    const breaches: string[] = []
    let tries = 0
    await repeatUntil(until, async () => {
      const texts = probes('127.0.7.1', 5_060, tollgate.sipPort)
      const forged = await Promise.all(
        texts.map(async (_, index) => {
          const forger = await forgerAt(`127.0.7.${index + 1}`)
          const text = probes(forger.address, forger.port, tollgate.sipPort)[index] ?? ''
          const answers: string[] = []
          forger.socket.on('message', (bytes) => answers.push(bytes.toString('latin1')))
          forger.socket.send(text, tollgate.sipPort, '127.0.0.1')
          return { forger, text, answers }
        }),
      )
      tries += forged.length
      // Repetitions come after 0.5, 1.5 and 3.5 s (RFC 3261, timer G).
      await sleep(2_000)
      for (const { forger, text, answers } of forged) {
        forger.socket.close()
        const bytes = answers.join('').length
        const lines = answers.map((answer) => answer.slice(0, answer.indexOf('\r\n')))
        if (bytes > 2 * text.length)
          breaches.push(`${text.slice(0, 30)}: ${text.length} for ${bytes} (${lines.join(', ')})`)
      }
    })
    return { tried: `${tries} requests`, breaches }
  },
}

const logIn = (port: number, path: string, localBytes: string): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: localBytes,
  })

const edge: Attack = {
  name: 'the public edge',
  guarantee: 'large bodies at the edge are refused unread, and staff are served meanwhile',
  async run({ tollgate, api, adminKey }, until) {
    const breaches: string[] = []
    const bodies = ['['.repeat(1_000_000), `{"email":"${'x'.repeat(1_000_000)}","password":"y"}`]
    let tries = 0
    await repeatUntil(until, async () => {
      const sent = bodies.flatMap((body) =>
        Array.from({ length: 6 }, () =>
          logIn(tollgate.edgePort, '/api/client/auth/login', body)
            .then(({ status }) => status)
            // The connection may end before all of the body is sent.
            .catch(() => 413),
        ),
      )
      tries += sent.length
      const began = performance.now()
      const { status } = await api('GET', '/api/v1/health', adminKey)
      if (status !== 200) breaches.push(`the API answers ${status}`)
      if (performance.now() - began > 1_000) breaches.push('the API is late by a second')
      for (const each of await Promise.all(sent))
        if (each !== 413 && each !== 429) breaches.push(`a body of 1 MB: ${each}`)
    })
    return { tried: `${tries} bodies of 1 MB`, breaches }
  },
}

export const strangers: readonly Attack[] = [
  floods,
  forgedBans,
  slowConnections,
  mutations,
  amplification,
  edge,
]
