import { expect, test } from 'vitest'
import { readSettings, serverOptions } from '../../../../engine/sip-server/program/settings.ts'
import { readXml } from '../../../../engine/sip-server/program/xml-file.ts'

const line = (text: string) => readSettings(text.split(' '), {}, undefined)
const file = (xml: string) => readSettings([], {}, readXml(`<drachtio>${xml}</drachtio>`))
const none = { externalIp: undefined, localNets: [], names: [] }

test('options of a contact belong to the one before them', () => {
  const { contacts } = line(
    '-c sip:10.0.0.5 -x 52.0.0.1 -n 10.0.0.0/16 --contact sip:10.0.0.6 --dns-name a --dns-name b,c',
  )
  expect(contacts).toEqual([
    { uri: 'sip:10.0.0.5', externalIp: '52.0.0.1', localNets: ['10.0.0.0/16'], names: [] },
    { ...none, uri: 'sip:10.0.0.6', names: ['a', 'b', 'c'] },
  ])
})

test.each([
  ['-x 52.0.0.1', '-x must stand behind the --contact that it is for'],
  ['-c sip:a -x 1.1.1.1 -x 2.2.2.2', '-x is given twice for the contact sip:a'],
  ['-c sip:a -x sbc.example.com', '-x is "sbc.example.com"; allowed is an IP address'],
  ['--contact', '--contact needs URI'],
  ['--noconfig=yes', '--noconfig takes no value'],
  ['--mtu 4096', "Unknown option '--mtu'"],
  ['--fast', "Unknown option '--fast'"],
  ['fast', 'does not take "fast"'],
])('%s: %s', (words, problem) => {
  expect(() => line(words)).toThrow(problem)
})

const contacts = `<sip><contacts>
  <contact external-ip="52.0.0.1" local-net="10.0.0.0/16" dns-names="a b">sip:10.0.0.5</contact>
  <contact>sip:10.0.0.6</contact>
</contacts></sip>`

test('contacts of the file, unless the command line has some', () => {
  const root = readXml(`<drachtio>${contacts}</drachtio>`)
  expect(readSettings([], {}, root).contacts).toEqual([
    { uri: 'sip:10.0.0.5', externalIp: '52.0.0.1', localNets: ['10.0.0.0/16'], names: ['a', 'b'] },
    { ...none, uri: 'sip:10.0.0.6' },
  ])
  const own = [{ ...none, uri: 'sip:1.1.1.1' }]
  expect(readSettings(['-c', 'sip:1.1.1.1'], {}, root).contacts).toEqual(own)
  expect(readSettings(['--listen', 'udp/h'], {}, root).contacts).toEqual([])
  expect(file('<sip><contact>sip:*</contact></sip>').contacts).toEqual([{ ...none, uri: 'sip:*' }])
})

const handlers = `<request-handlers>
  <request-handler sip-method="invite" http-method="POST">http://a</request-handler>
  <request-handler verify-peer="yes">https://b/c</request-handler>
</request-handlers>`

test('request handlers: of the command line, else of the environment, else of the file', () => {
  const root = readXml(`<drachtio>${handlers}</drachtio>`)
  const set = { DRACHTIO_HTTP_HANDLER_URI: 'http://e' }
  const all = { sipMethod: '*', httpMethod: 'get', verifies: true }
  expect(readSettings([], {}, root).handlers).toEqual([
    { sipMethod: 'INVITE', httpMethod: 'post', url: 'http://a', verifies: false },
    { ...all, url: 'https://b/c' },
  ])
  expect(readSettings([], set, root).handlers).toEqual([{ ...all, url: 'http://e' }])
  const words = ['-a', 'http://l', '-m', 'post']
  expect(readSettings(words, set, root).handlers).toEqual([
    { ...all, httpMethod: 'post', url: 'http://l' },
  ])
})

const optionsOf = (text: string) => serverOptions(line(`--secret s ${text}`.trim()))

test('without a contact SIP is served on all addresses, by UDP and TCP', () => {
  const { listen, admin, adminTls, screen, tls, metrics } = optionsOf('')
  expect(listen.map(({ protocol, host, port }) => `${protocol}/${host}:${port}`)).toEqual([
    'udp/0.0.0.0:5060',
    'tcp/0.0.0.0:5060',
  ])
  expect(admin).toEqual({ host: '0.0.0.0', port: 9_022 })
  expect([adminTls, screen, tls, metrics]).toEqual([undefined, undefined, undefined, undefined])
})

test.each([
  ['sip:10.0.0.5', ['udp/10.0.0.5:5060', 'tcp/10.0.0.5:5060']],
  ['sip:*:5070;transport=udp', ['udp/0.0.0.0:5070']],
  ['sips:*', ['tls/0.0.0.0:5061']],
  ['sips:h:8443;transport=wss', ['wss/h:8443']],
  ['sip:me@[::1]:5070;transport=ws,tcp', ['ws/::1:5070', 'tcp/::1:5070']],
])('the contact %s is served at %j', (uri, places) => {
  const { listen } = optionsOf(`-c ${uri}`)
  expect(listen.map(({ protocol, host, port }) => `${protocol}/${host}:${port}`)).toEqual(places)
})

test.each([
  ['-c sip:h;transport=sctp', 'contact "sip:h;transport=sctp" is not understood'],
  ['-c 10.0.0.5', 'contact "10.0.0.5" is not understood'],
  ['--cert-file a', '--cert-file and --key-file belong together'],
  ['--homer 10.0.0.1', '--homer needs --homer-id'],
])('%s: %s', (text, problem) => {
  expect(() => optionsOf(text)).toThrow(problem)
})
