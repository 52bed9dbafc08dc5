/** Every option in each of its forms: it is read, or refused with what to do instead. */
import { expect, test } from 'vitest'
import {
  optionRows,
  type OptionName,
  type OptionRow,
} from '../../../../engine/sip-server/program/option-table.ts'
import { fileToRead, readSettings } from '../../../../engine/sip-server/program/settings.ts'
import { readCommandLine } from '../../../../engine/sip-server/program/command-line.ts'
import { readXml } from '../../../../engine/sip-server/program/xml-file.ts'

/** Two texts that an option takes, and what the first one means. */
type Sample = readonly [text: string, other: string, value: unknown]

const word: Sample = ['one', 'two', 'one']
const yes: Sample = ['true', 'no', true]
const number: Sample = ['7', '8', 7]
const place: Sample = ['10.0.0.1:81', '10.0.0.1:82', { host: '10.0.0.1', port: 81 }]

const samples: Record<OptionName, Sample> = {
  file: word,
  noConfig: yes,
  help: yes,
  version: yes,
  daemon: yes,
  user: word,
  contact: ['sip:10.0.0.5;transport=udp', 'sip:10.0.0.6', undefined],
  externalIp: ['52.0.0.1', '52.0.0.2', undefined],
  localNet: ['10.0.0.0/16', '10.1.0.0/16', undefined],
  dnsName: ['sip.example.com', 'sbc.example.com', undefined],
  localDomain: ['a.example, b.example', 'c', ['a.example', 'b.example']],
  listen: [
    'udp/0.0.0.0:5060,tls/[::1]',
    'udp/h',
    [
      { protocol: 'udp', host: '0.0.0.0', port: 5_060 },
      { protocol: 'tls', host: '::1', port: 5_061 },
    ],
  ],
  advertisedHost: ['192.0.2.1', 'h', '192.0.2.1'],
  outboundProxy: ['sip:192.0.2.9', 'sip:192.0.2.8', 'sip:192.0.2.9'],
  webSocketOrigins: ['https://a.example', 'https://b.example', ['https://a.example']],
  dnsServers: ['10.0.0.2', '10.0.0.3:54', ['10.0.0.2']],
  address: ['127.0.0.1', '10.0.0.1', '127.0.0.1'],
  port: number,
  tlsPort: number,
  admin: place,
  adminTls: place,
  secret: word,
  keepAliveSeconds: number,
  frameLength: ['characters', 'bytes', 'characters'],
  handler: ['tcp://10.0.0.1:81', 'tcp://10.0.0.1:82', 'tcp://10.0.0.1:81'],
  httpHandler: ['http://h/one', 'http://h/two', undefined],
  httpMethod: ['POST', 'GET', undefined],
  handlerSipMethod: ['INVITE', 'REGISTER', undefined],
  handlerVerifies: yes,
  keyFile: word,
  certFile: word,
  chainFile: word,
  caFile: word,
  minTlsVersion: ['1.3', '1.0', 'TLSv1.3'],
  ciphers: word,
  verifiesClients: yes,
  clientCertificates: ['optional', 'off', 'optional'],
  verifiesServers: ['off', 'on', 'off'],
  optionsUserAgent: word,
  rejectsRegisterWithoutRealm: yes,
  spammerAction: ['reject', 'discard', 'reject'],
  spammerTcpAction: ['reject', 'discard', 'reject'],
  spammerHeader: ['User-Agent', 'From', undefined],
  spammerValue: ['sipcli', 'scanner', undefined],
  blacklistFile: word,
  alwaysSend180: yes,
  defaultRefresher: ['uas', 'none', 'uas'],
  t1: number,
  t2: number,
  t4: number,
  t1x64: number,
  disablesNatDetection: yes,
  logLevel: ['debug', 'error', 'debug'],
  homer: place,
  homerPort: number,
  homerId: number,
  metrics: place,
  metricsPort: number,
  metricsAddress: ['10.0.0.1', 'h', '10.0.0.1'],
}

/** A file that says only this. */
function fileWith(path: string, text: string) {
  const [elements = '', attribute] = path.split('@')
  const names = elements.split('/')
  const last = attribute === undefined ? '' : ` ${attribute}="${text}"`
  const open = names.map((name, at) => `<${name}${at === names.length - 1 ? last : ''}>`).join('')
  const close = names
    .toReversed()
    .map((name) => `</${name}>`)
    .join('')
  return readXml(`<drachtio>${open}${attribute === undefined ? text : ''}${close}</drachtio>`)
}

type Read = () => ReturnType<typeof readSettings>

/** Each way in which an option can be given. */
function waysOf(row: OptionRow<unknown>, text: string): readonly [string, Read][] {
  const { option, short, alias, value, environment = [], xml = [] } = row
  const words = (spelled: string) => (value === undefined ? [spelled] : [spelled, text])
  const line =
    (given: readonly string[]): Read =>
    () =>
      readSettings(given, {}, undefined)
  const spelled = [option && `--${option}`, alias && `--${alias}`, short && `-${short}`]
  return [
    ...spelled.flatMap((name): [string, Read][] => (name ? [[name, line(words(name))]] : [])),
    ...(option && value ? [[`--${option}=`, line([`--${option}=${text}`])] as [string, Read]] : []),
    ...environment.map((name): [string, Read] => [
      name,
      () => readSettings([], { [name]: text }, undefined),
    ]),
    ...xml.map((path): [string, Read] => [path, () => readSettings([], {}, fileWith(path, text))]),
  ]
}

const plain = optionRows.filter(([, { isStructure }]) => isStructure !== true)

test.each(plain)('%s is read in each of its forms', (name, row) => {
  const [text, , value] = samples[name]
  const ways = waysOf(row, text)
  expect(ways.length).toBeGreaterThan(0)
  for (const [spelled, read] of ways) {
    if (row.refused !== undefined) {
      expect(read).toThrow(` cannot be used: ${row.refused}`)
      continue
    }
    expect({ spelled, values: read().values }).toEqual({ spelled, values: { [name]: value } })
  }
})

const supported = plain.filter(
  ([, { refused, value, environment, option }]) =>
    refused === undefined && (value ?? environment ?? option) !== undefined,
)

test.each(supported.filter(([, { option, environment }]) => option && environment))(
  '%s: the command line goes before the environment, and that before the file',
  (name, row) => {
    const [text, other, value] = samples[name]
    const { option, value: takes, environment: [variable = ''] = [], xml: [path] = [] } = row
    const file = path === undefined ? undefined : fileWith(path, other)
    const words = takes === undefined ? [`--${option}`] : [`--${option}`, text]
    const environment = { [variable]: other }
    expect(readSettings(words, environment, file).values).toEqual({ [name]: value })
    if (file === undefined) return
    expect(readSettings([], { [variable]: text }, file).values).toEqual({ [name]: value })
  },
)

test('the file that is read: by name, by the environment, or the usual one', () => {
  const read = (words: string[], environment = {}) =>
    fileToRead(readCommandLine(words), environment)
  expect(read(['-f', 'a.xml'], { DRACHTIO_CONFIG_FILE_PATH: 'b' })).toEqual({
    path: 'a.xml',
    isNamed: true,
  })
  expect(read([], { DRACHTIO_CONFIG_FILE_PATH: 'b' })).toEqual({ path: 'b', isNamed: true })
  expect(read([])).toEqual({ path: '/etc/drachtio.conf.xml', isNamed: false })
  expect(read(['--listen', 'udp/h'])).toBeUndefined()
  expect(read(['--noconfig', '-f', 'a.xml'])).toBeUndefined()
})
