/**
 * Every option that is supported does what its row says, seen from outside: the program on real
 * sockets. The names before the colon of a title are those of the rows; requests and TLS have files
 * of their own beside this one.
 */
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { optionRows } from '../../../../engine/sip-server/program/option-table.ts'
import { datagramSink } from '../../../support/datagram-sink.ts'
import { DnsServer } from '../../../support/dns-server.ts'
import { freePort } from '../../../support/free-port.ts'
import { sdp } from '../../../support/sip-peer.ts'
import {
  admin,
  application,
  ask,
  base,
  contact,
  shownAddress,
  start,
  startWith,
  type Environment,
} from '../../../support/sip-server-options.ts'
import { SipServerProgram } from '../../../support/sip-server-program.ts'

/** Whether the first entry of Route is taken for this server, which removes it. */
async function isOwnName(program: SipServerProgram, name: string): Promise<boolean> {
  const target = { uri: '' }
  await application(program, (srf) =>
    srf.invite((request) => void srf.proxyRequest(request, target.uri).catch(() => undefined)),
  )
  const [caller, callee] = [await program.peer(), await program.peer()]
  target.uri = callee.uri
  const headers = [`Route: <sip:${name}:${program.port('udp')};lr>`]
  caller.request('INVITE', caller.leg(program.uri('a')), { headers, body: sdp('a') })
  const invite = await callee.next('INVITE')
  callee.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  return invite.all('Route').length === 0
}

test('every supported option is shown, here or in the files beside', () => {
  const texts = ['option-behaviour', 'option-behaviour-requests', 'option-behaviour-tls'].map(
    (name) => readFileSync(`test/engine/sip-server/program/${name}.test.ts`, 'utf8'),
  )
  const shown = texts.join().matchAll(/\n(?:test(?:\.each\([^]*?\))?|\)|\]\))\(\s*'([\w, ]+): /g)
  const names = new Set([...shown].flatMap(([, list = '']) => list.split(', ')))
  const missing = optionRows.flatMap(([name, { refused }]) =>
    refused === undefined && !names.has(name) ? [name] : [],
  )
  expect(missing).toEqual([])
})

// The files that the program reads.

test.each([
  ['-f d.xml', {}],
  ['', { DRACHTIO_CONFIG_FILE_PATH: 'd.xml' }],
] as [string, Environment][])('file: "%s" and %j', async (words, environment) => {
  const files = { 'd.xml': '<drachtio><admin secret="s"/></drachtio>' }
  const program = await SipServerProgram.start(`${words} ${contact} ${admin}`, {
    files,
    environment,
  })
  expect(program.printed[0]).toContain('ready sip=udp/')
})

test('noConfig: a file that is not there does no harm', async () => {
  expect((await start(`--noconfig -f absent.xml ${base}`)).printed[0]).toContain('ready ')
})

test('help, version: printed, and nothing is served', async () => {
  expect((await start('--help')).printed.join()).toContain('Options:')
  expect((await start('--version')).printed).toEqual(['1.2.3'])
})

// Where SIP is served.

test('contact: two of them are two listeners for each transport', async () => {
  const { printed } = await start(`${contact} ${base}`)
  expect(printed[0]?.match(/udp\/127\.0\.0\.1:\d+,tcp\/127\.0\.0\.1:\d+/g)).toHaveLength(2)
})

test('listen: the same in another form', async () => {
  const { printed } = await start(`--listen udp/127.0.0.1:0,ws/127.0.0.1:0 ${admin} --secret s`)
  expect(printed[0]).toMatch(/^ready sip=udp\/127\.0\.0\.1:\d+,ws\/127\.0\.0\.1:\d+ /)
})

test('externalIp, localNet: who is outside sees the one, who is inside the bound address', async () => {
  const outside = `${contact} --external-ip 192.0.2.7 ${admin} --secret cymru`
  expect(await shownAddress(await start(outside))).toBe('192.0.2.7')
  const inside = `${contact} --external-ip 192.0.2.7 --local-net 127.0.0.0/8 ${admin} --secret cymru`
  expect(await shownAddress(await start(inside))).toBe('127.0.0.1')
})

test('advertisedHost: what a listener shows', async () => {
  const words = `--listen udp/127.0.0.1:0 ${admin} --secret cymru`
  const program = await start(words, { SIP_ADVERTISED_HOST: '192.0.2.8' })
  expect(await shownAddress(program)).toBe('192.0.2.8')
})

test('dnsName, localDomain: names that mean this server', async () => {
  const named = await start(`${contact} --dns-name sip.example.com ${admin} --secret cymru`)
  expect(await isOwnName(named, 'sip.example.com')).toBe(true)
  const local = await start(base, { DRACHTIO_LOCAL_DOMAIN: 'home.example.com' })
  expect(await isOwnName(local, 'home.example.com')).toBe(true)
})

test('outboundProxy: where a request goes that names no next hop', async () => {
  const proxy = await datagramSink()
  const srf = await application(
    await startWith(`<outbound-proxy>sip:127.0.0.1:${proxy.port}</outbound-proxy>`),
  )
  void srf.request('sip:a@198.51.100.1', { method: 'OPTIONS' })
  await expect.poll(() => String(proxy.received[0])).toContain('OPTIONS sip:a@198.51.100.1')
})

test('dnsServers: they are asked for a next hop', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const program = await start(base, { SIP_DNS_SERVERS: dns.address })
  const peer = await program.peer()
  dns.serve({ type: 'A', name: 'peer.example', ttl: 60, data: '127.0.0.1' })
  void (await application(program)).request(`sip:a@peer.example:${peer.port}`, {
    method: 'OPTIONS',
  })
  await peer.next('OPTIONS')
  expect(dns.asked).toContain('A peer.example')
})

test('webSocketOrigins: pages of others are refused', async () => {
  const words = `--listen ws/127.0.0.1:0 ${admin} --secret s`
  const program = await start(words, { SIP_WS_ORIGINS: 'https://phone.example' })
  const opened = async (origin: string): Promise<boolean> => {
    const socket = new WebSocket(`ws://127.0.0.1:${program.port('ws')}`, 'sip', { origin })
    onTestFinished(() => socket.terminate())
    return new Promise((resolve) => {
      socket.on('open', () => resolve(true)).on('error', () => resolve(false))
    })
  }
  expect([await opened('https://phone.example'), await opened('https://other.example')]).toEqual([
    true,
    false,
  ])
})

// The notices about it.

test('logLevel: the least level of lines', async () => {
  const files = { 'd.xml': '<drachtio><cdrs/></drachtio>' }
  const levelOf = async (words: string): Promise<string | undefined> =>
    (await SipServerProgram.start(`-f d.xml ${base} ${words}`, { files })).logged[0]
  expect(await levelOf('--loglevel error')).toMatch(/^error /)
  expect(await levelOf('')).toMatch(/^info /)
})

test('homer, homerPort, homerId: copies of messages', async () => {
  const sink = await datagramSink()
  const words = `--homer 127.0.0.1:${sink.port} --homer-id 259`
  const byWords = await start(`${base} ${words}`)
  await expect
    .poll(async () => {
      await ask(byWords)
      return sink.received.length
    })
    .toBeGreaterThan(1)
  // Chunk 12: by which number Homer knows the server.
  expect(sink.received[0]?.includes(Buffer.from('0000000c000a00000103', 'hex'))).toBe(true)
  const other = await datagramSink()
  const xml = `<capture-server id="7" port="${other.port}">127.0.0.1</capture-server>`
  const byFile = await startWith(xml)
  await expect
    .poll(async () => {
      await ask(byFile)
      return other.received.length
    })
    .toBeGreaterThan(1)
})

test('metrics, metricsPort, metricsAddress: Prometheus may ask there', async () => {
  const figures = async (port: number): Promise<string> =>
    (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const program = await start(`${base} --prometheus-scrape-port 127.0.0.1:0`)
  expect(await figures(program.place('metrics').port)).toContain('drachtio_')
  const port = await freePort()
  await startWith('', `<monitoring><prometheus port="${port}">127.0.0.1</prometheus></monitoring>`)
  expect(await figures(port)).toContain('drachtio_')
})
