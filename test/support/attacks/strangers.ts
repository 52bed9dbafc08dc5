/** Attacks that need no credential at all. */
import { createSocket, type Socket } from 'node:dgram'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, domain, repeatUntil } from './world.ts'

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

const mutations: Attack = {
  name: 'mutated messages',
  guarantee: 'no datagram ends the process, or makes an error that nothing caught',
  async run(world, until) {
    const { tollgate, random, api, adminKey } = world
    const statuses = new Set<number>()
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
      statuses.add((await api('GET', '/api/v1/health', adminKey)).status)
    })
    forger.socket.close()
    const breaches = tollgate.faults.slice(faults).map((line) => line.slice(0, 200))
    for (const status of statuses) if (status !== 200) breaches.push(`the API answers ${status}`)
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

/** Requests that a stranger may send, in few bytes, to be answered in many. */
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

export const strangers: readonly Attack[] = [mutations, amplification, edge]
