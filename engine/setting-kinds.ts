/**
 * The kinds of values that settings take: how their text is read, and how what is allowed is said.
 */
import { isIP, isIPv4 } from 'node:net'
import { z } from 'zod'
import { urlsOf } from '../schema/net/hosts.ts'
import { sipTarget } from '../schema/net/sip-target.ts'
import { parseNetwork } from '../schema/net/ip-address.ts'
import { bracketed, withoutBrackets } from '../schema/sip/index.ts'

/** `allowed` completes the sentence "allowed is …". */
export interface SettingKind<T> {
  readonly schema: z.ZodType<T, string>
  readonly allowed: string
}

export interface HostAndPort {
  /** IPv6 without brackets. */
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /**
   * Not set, but found: the socket that the service manager has bound there
   * (`socket-activation.ts`).
   */
  readonly descriptor?: number
}

const listenProtocols = ['udp', 'tcp', 'tls', 'ws', 'wss'] as const

export interface SipListenAddress extends HostAndPort {
  readonly protocol: (typeof listenProtocols)[number]
}

export interface DrachtioAddress extends HostAndPort {
  readonly secret: string
  readonly tls?: { readonly caFile: string | undefined }
}

export function wholeNumber(minimum: number, maximum: number, unit?: string): SettingKind<number> {
  const schema = z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.number().min(minimum).max(maximum))
  const range = `a whole number from ${minimum} to ${maximum}`
  return { schema, allowed: unit === undefined ? range : `${range} (${unit})` }
}

/** 0 switches off what the number is for. */
export function zeroOr(minimum: number, maximum: number, unit: string): SettingKind<number> {
  const { schema, allowed } = wholeNumber(minimum, maximum, unit)
  return {
    schema: z.union([z.literal('0').transform(Number), schema]),
    allowed: `0, or ${allowed}`,
  }
}

export function oneOf<const Words extends readonly [string, ...string[]]>(
  ...words: Words
): SettingKind<Words[number]> {
  return { schema: z.string().pipe(z.enum(words)), allowed: words.join(' or ') }
}

export function text(minimum: number, maximum: number): SettingKind<string> {
  const schema = z.string().min(minimum).max(maximum)
  return { schema, allowed: `a text of ${minimum} to ${maximum} characters` }
}

/** Files that Node runs as they are. */
export const hooksFile: SettingKind<string> = {
  schema: z
    .string()
    .max(1_000)
    .regex(/.\.[cm]?[jt]s$/),
  allowed: 'the path of a file .ts, .mts, .cts, .js, .mjs or .cjs',
}

/** A key of 32 bytes; `schema/secrets` reads the text. */
export const key32: SettingKind<string> = {
  schema: z.string().regex(/^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/_-]{43}=?)$/),
  allowed: '32 bytes as base64 or hexadecimal digits, such as `openssl rand -base64 32` prints',
}

export const userName: SettingKind<string> = {
  schema: z
    .string()
    .regex(/^[\w.@+-]{1,64}$/)
    .transform((name) => name.toLowerCase()),
  allowed: '1 to 64 letters, digits or . _ @ + -',
}

const hostPattern =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i

const isHost = (value: string): boolean => isIP(value) !== 0 || hostPattern.test(value)

export const hostName: SettingKind<string> = {
  schema: z.string().refine(isHost),
  allowed: 'an IP address or a host name',
}

export const postgresUrl: SettingKind<string> = {
  schema: z
    .string()
    .max(2_000)
    .refine((value) => urlsOf(value) !== undefined),
  allowed:
    'postgres://user:password@host:port[,host:port…]/database[?target_session_attrs=read-write]',
}

export const instanceName: SettingKind<string> = {
  schema: z.string().regex(/^[a-z0-9](?:[\w.-]{0,61}[a-z0-9])?$/i),
  allowed: '1 to 63 letters, digits or . _ -, with a letter or digit at both ends',
}

/** Other instances send there, and take requests from that address alone. */
export const instanceSipUri: SettingKind<string> = {
  schema: z
    .string()
    .max(255)
    .regex(/^sips?:[^@;?]+(;transport=(udp|tcp|tls))?$/i)
    .refine((value) => sipTarget(value) !== undefined),
  allowed: 'sip:host[:port][;transport=udp|tcp|tls], without a user',
}

export const hostNames: SettingKind<readonly string[]> = {
  schema: z
    .string()
    .transform(
      orIssue((value) => listOf(value, (name) => (isHost(name) ? name.toLowerCase() : undefined))),
    ),
  allowed: 'a comma list of host names, such as tollgate.example.com',
}

const MAX_EXIT_CODES = 8

/** The longest first. */
export const exitCodes: SettingKind<readonly string[]> = {
  schema: z.string().transform(
    orIssue((value) => {
      if (value.toLowerCase() === 'none') return []
      const codes = listOf(value, (code) => (/^[0-9]{2,6}$/.test(code) ? code : undefined))
      return codes && codes.length <= MAX_EXIT_CODES
        ? [...new Set(codes)].toSorted((a, b) => b.length - a.length)
        : undefined
    }),
  ),
  allowed: `none, or a comma list of at most ${MAX_EXIT_CODES} codes of 2 to 6 digits, such as 00`,
}

const MAX_EXTENSION_HEADERS = 32

/** In small letters. The mark of our own calls is not among them: only this program sets it. */
export const extensionHeaders: SettingKind<ReadonlySet<string>> = {
  schema: z.string().transform(
    orIssue((value) => {
      if (value.toLowerCase() === 'none') return new Set<string>()
      const names = listOf(value, (name) => {
        const key = name.toLowerCase()
        return /^x-[\w.!%*+`'~-]{1,62}$/.test(key) && key !== 'x-call-uuid' ? key : undefined
      })
      return names && names.length <= MAX_EXTENSION_HEADERS ? new Set(names) : undefined
    }),
  ),
  allowed: 'none, or a comma list of header names that begin with X-, but not X-Call-UUID',
}

const MAX_HOSTS = 64

export const hostList: SettingKind<readonly string[]> = {
  schema: z.string().transform(
    orIssue((value) => {
      const names = listOf(value, (name) => (isHost(name) ? name.toLowerCase() : undefined))
      return names && names.length <= MAX_HOSTS ? names : undefined
    }),
  ),
  allowed: `a comma list of at most ${MAX_HOSTS} host names`,
}

export const hostAndPort: SettingKind<HostAndPort> = {
  schema: z.string().transform(orIssue(parseHostAndPort)),
  allowed: 'host:port, such as 127.0.0.1:8080 or [::1]:8080 (port 0: any free one)',
}

/** The text that `hostAndPort` reads. */
export const formatHostAndPort = ({ host, port }: HostAndPort): string =>
  `${bracketed(host)}:${port}`

export const listenAddresses: SettingKind<readonly SipListenAddress[]> = {
  schema: z.string().transform(orIssue((value) => listOf(value, parseListenAddress))),
  allowed: `a comma list of ${listenProtocols.join('|')}/host[:port], such as udp/0.0.0.0:5060`,
}

export const webOrigins: SettingKind<readonly string[]> = {
  schema: z.string().transform(orIssue((value) => listOf(value, parseOrigin))),
  allowed: 'a comma list of origins, such as https://phone.example.com',
}

export const dnsServers: SettingKind<readonly string[]> = {
  schema: z.string().transform(orIssue((value) => listOf(value, parseDnsServer))),
  allowed: 'a comma list of address[:port], such as 10.0.0.2 or [2001:db8::2]:5353',
}

export const addressRanges: SettingKind<readonly string[]> = {
  schema: z
    .string()
    .transform(orIssue((value) => (value === 'none' ? [] : listOf(value, parseAddressRange)))),
  allowed: 'a comma list of address ranges, such as 10.0.0.0/8,::1/128, or none',
}

/** Slugs of the tenants whose users the proxies of a network authenticate. */
export interface EdgeProxyRule {
  readonly network: string
  readonly tenants: readonly string[]
}

export const edgeProxyRules: SettingKind<readonly EdgeProxyRule[]> = {
  schema: z
    .string()
    .transform(orIssue((value) => (value === 'none' ? [] : listOf(value, parseEdgeProxy)))),
  allowed: 'a comma list of range=tenant+tenant, such as 10.0.0.5=acme+globex, or none',
}

export const httpUrl: SettingKind<string> = {
  schema: z.string().transform(orIssue(parseHttpUrl)),
  allowed: 'an http:// or https:// address',
}

export interface SmtpServer extends HostAndPort {
  readonly tls: 'starttls' | 'tls' | 'none'
  readonly user: string | undefined
  readonly password: string | undefined
}

export const smtpServer: SettingKind<SmtpServer> = {
  schema: z.string().transform(orIssue(parseSmtpUrl)),
  allowed:
    'smtp://user:password@host:port with STARTTLS, smtps://… with TLS from the start, or ' +
    'smtp://host:port?tls=none without encryption and password',
}

export const mailAddress: SettingKind<string> = {
  schema: z.email().max(254),
  allowed: 'an e-mail address',
}

function parseSmtpUrl(value: string): SmtpServer | undefined {
  if (!URL.canParse(value)) return undefined
  const { protocol, hostname, port, username, password, search, pathname } = new URL(value)
  if (!['smtp:', 'smtps:'].includes(protocol) || hostname === '') return undefined
  if (!['', '/'].includes(pathname) || !['', '?tls=none'].includes(search)) return undefined
  const isPlain = search !== ''
  if (isPlain && (protocol === 'smtps:' || username !== '')) return undefined
  if ((username === '') !== (password === '')) return undefined
  const tls = isPlain ? 'none' : protocol === 'smtps:' ? 'tls' : 'starttls'
  const usual = { starttls: 587, tls: 465, none: 25 }[tls]
  const [user, secret] = [username, password].map(decoded)
  if (user === undefined || secret === undefined) return undefined
  return {
    host: withoutBrackets(hostname),
    port: port === '' ? usual : Number(port),
    tls,
    user: user === '' ? undefined : user,
    password: secret === '' ? undefined : secret,
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

export const drachtioUrls: SettingKind<readonly DrachtioAddress[]> = {
  schema: z.string().transform(orIssue((value) => listOf(value, parseDrachtioUrl))),
  allowed:
    'a comma list of drachtio://:secret@host:port, with TLS drachtios://…, and ?ca=file ' +
    'for an authority',
}

export interface HepServer extends HostAndPort {
  readonly transport: 'udp' | 'tls'
}

const HEP_PORT = 9_060

/** As the other settings write a transport, and as Homer's agents do. */
export const hepServer: SettingKind<HepServer> = {
  schema: z.string().transform(
    orIssue((value) => {
      const [, transport, place = ''] = /^(?:(udp|tls)(?::\/\/|[:/]))?(.+)$/.exec(value) ?? []
      const address = parseHostAndPort(place) ?? parseHostAndPort(`${place}:${HEP_PORT}`)
      if (address === undefined || address.port === 0) return undefined
      return { transport: transport === 'tls' ? ('tls' as const) : ('udp' as const), ...address }
    }),
  ),
  allowed:
    '[udp/|tls/]host[:port], such as 10.0.0.9, tls/homer.example.com:9061 or ' +
    `tls:homer.example.com:9061; without port ${HEP_PORT}`,
}

export interface RelayServer extends HostAndPort {
  /** `host:port`, for people. */
  readonly name: string
  /** Its share of new sessions; 0: only while no other relay answers. */
  readonly weight: number
}

const MAX_RELAYS = 32
const MAX_WEIGHT = 100

export const relayAddresses: SettingKind<readonly RelayServer[]> = {
  schema: z.string().transform(
    orIssue((value) => {
      const relays = listOf(value, parseRelay)
      const names = new Set(relays?.map(({ name }) => name.toLowerCase()))
      return relays && names.size === relays.length && names.size <= MAX_RELAYS ? relays : undefined
    }),
  ),
  allowed:
    `a comma list of udp/host:port, each once, with ;weight=0 to ${MAX_WEIGHT} (1 unless told), ` +
    `at most ${MAX_RELAYS}`,
}

/** Makes a parser whose `undefined` means "wrong" into a zod transformation. */
function orIssue<T>(parse: (value: string) => T | undefined) {
  return (value: string, context: z.RefinementCtx): T => {
    const parsed = parse(value.trim())
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: 'wrong form' })
    return z.NEVER
  }
}

function listOf<T>(value: string, parse: (part: string) => T | undefined): T[] | undefined {
  const parts = value.split(',').map((part) => parse(part.trim()))
  const parsed = parts.filter((part) => part !== undefined)
  return parsed.length === parts.length ? parsed : undefined
}

function parseHostAndPort(value: string): HostAndPort | undefined {
  const colon = value.lastIndexOf(':')
  const port = parsePort(value.slice(colon + 1))
  if (colon < 1 || port === undefined) return undefined
  const shown = value.slice(0, colon)
  const host = withoutBrackets(shown)
  const isRight = host !== shown ? isIP(host) === 6 : isIPv4(host) || hostPattern.test(host)
  return isRight ? { host, port } : undefined
}

function parsePort(value: string): number | undefined {
  const port = Number(value)
  return /^\d{1,5}$/.test(value) && port <= 65_535 ? port : undefined
}

/** RFC 3261 §19.1.2, RFC 7118 §10: the port of an address without one. */
const defaultPorts = { udp: 5_060, tcp: 5_060, tls: 5_061, ws: 80, wss: 443 } as const

function parseListenAddress(value: string): SipListenAddress | undefined {
  const slash = value.indexOf('/')
  const protocol = listenProtocols.find((name) => name === value.slice(0, slash))
  if (protocol === undefined) return undefined
  const place = value.slice(slash + 1)
  const address = parseHostAndPort(place) ?? parseHostAndPort(`${place}:${defaultPorts[protocol]}`)
  return address && { protocol, ...address }
}

function parseRelay(value: string): RelayServer | undefined {
  const match = /^udp\/([^;]+)(?:;weight=(\d{1,3}))?$/.exec(value)
  const [, place = '', weightText = '1'] = match ?? []
  const address = parseHostAndPort(place)
  const weight = Number(weightText)
  if (address === undefined || address.port === 0 || weight > MAX_WEIGHT) return undefined
  return { ...address, name: formatHostAndPort(address), weight }
}

function parseOrigin(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  return url !== undefined && url.origin === value.toLowerCase() ? url.origin : undefined
}

/** As `Resolver.setServers` of `node:dns` takes it. */
function parseDnsServer(value: string): string | undefined {
  if (isIP(value) !== 0) return value
  const server = parseHostAndPort(value)
  return server !== undefined && isIP(server.host) !== 0 && server.port > 0
    ? formatHostAndPort(server)
    : undefined
}

/** An address alone is the range that holds only itself. */
function parseAddressRange(value: string): string | undefined {
  if (parseNetwork(value) === undefined) return undefined
  return value.includes('/') ? value : `${value}/${isIP(value) === 4 ? 32 : 128}`
}

function parseEdgeProxy(value: string): EdgeProxyRule | undefined {
  const [range = '', names = '', ...rest] = value.split('=')
  const network = parseAddressRange(range.trim())
  const tenants = names.split('+').map((name) => name.trim())
  const isRight = rest.length === 0 && tenants.every((name) => /^[a-z0-9-]{1,63}$/.test(name))
  return network !== undefined && isRight ? { network, tenants } : undefined
}

function parseHttpUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  return isHttp ? value.replace(/\/+$/, '') : undefined
}

function parseDrachtioUrl(value: string): DrachtioAddress | undefined {
  const match = /^drachtio(s?):\/\/:([^@/]+)@([^/?]+)\/?(?:\?ca=(.+))?$/.exec(value)
  const [, isSecure = '', secret = '', place = '', caFile] = match ?? []
  const address = parseHostAndPort(place)
  if (secret === '' || address === undefined) return undefined
  if (isSecure === '') return caFile === undefined ? { secret, ...address } : undefined
  return { secret, ...address, tls: { caFile } }
}
