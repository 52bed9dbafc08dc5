/** Joins the command line, the environment and the file, in this order. Pure. */
import { OptionError } from '../errors.ts'
import { defaultPort } from '../flow.ts'
import type { Protocol } from '../../../schema/sip/message.ts'
import type { SipServerOptions, TlsOptions } from '../options.ts'
import { type CommandLineOption, readCommandLine } from './command-line.ts'
import { flag } from './kinds.ts'
import {
  type OptionName,
  optionRows,
  optionTable,
  type OptionRow,
  type Values,
} from './option-table.ts'
import { type Element, elementsAt, pathsIn, textsAt } from './xml-file.ts'
import { screening } from '../rules/screening.ts'
import { defaultTimers } from '../transaction/machine.ts'

export interface ContactOption {
  readonly uri: string
  readonly externalIp: string | undefined
  readonly localNets: readonly string[]
  readonly names: readonly string[]
}

export interface HandlerSettings {
  /** Upper case, or `*`. */
  readonly sipMethod: string
  readonly httpMethod: 'get' | 'post'
  readonly url: string
  readonly verifies: boolean
}

export interface SpammerHeader {
  /** Lower case. */
  readonly name: string
  readonly values: readonly string[]
}

export interface Settings {
  readonly values: Values
  readonly contacts: readonly ContactOption[]
  readonly handlers: readonly HandlerSettings[]
  readonly spammers: readonly SpammerHeader[]
  /** Warnings about options without effect. */
  readonly notes: readonly string[]
}

export type ProgramEnvironment = Readonly<Record<string, string | undefined>>

interface Source {
  readonly spelled: string
  readonly text: string
}

/** The file that is to be read; undefined: none. `isNamed`: it must be there. */
export function fileToRead(
  given: readonly CommandLineOption[],
  environment: ProgramEnvironment,
): { readonly path: string; readonly isNamed: boolean } | undefined {
  const has = (name: OptionName): boolean => given.some((option) => option.name === name)
  if (has('noConfig')) return undefined
  const path = given.findLast(({ name }) => name === 'file')?.text ?? fileIn(environment)
  if (path !== undefined) return { path, isNamed: true }
  return has('listen') ? undefined : { path: '/etc/drachtio.conf.xml', isNamed: false }
}

const fileIn = (environment: ProgramEnvironment): string | undefined =>
  fromEnvironment(optionTable.file, environment)?.text

/** @throws OptionError */
export function readSettings(
  words: readonly string[],
  environment: ProgramEnvironment,
  file: Element | undefined,
): Settings {
  const given = readCommandLine(words)
  const notes: string[] = []
  const values: Partial<Record<OptionName, unknown>> = {}
  for (const [name, row] of optionRows) {
    if (row.isStructure) continue
    const source =
      fromCommandLine(name, given) ?? fromEnvironment(row, environment) ?? fromFile(row, file)
    if (source === undefined) continue
    const value = readValue(row, source)
    if (value === false && row.refused !== undefined) continue
    if (row.refused !== undefined)
      throw new OptionError(`${source.spelled} cannot be used: ${row.refused}`)
    values[name] = value
  }
  const unknown = file === undefined ? [] : unknownIn(file)
  if (unknown.length > 0) notes.push(`these have no effect here: ${unknown.join(', ')}`)
  return {
    // Each value was read by the kind of its row.
    values: values as Values,
    contacts: given.some(({ name }) => name === 'listen' || optionTable[name].isOfContact)
      ? contactsIn(given)
      : contactsOfFile(file),
    handlers: handlersIn(given, environment, file),
    spammers: spammersOf(file, notes),
    notes,
  }
}

/** Options that take effect when the configuration is read again. */
const changeable: ReadonlySet<string> = new Set<OptionName>([
  'logLevel',
  'optionsUserAgent',
  'rejectsRegisterWithoutRealm',
  'spammerAction',
  'spammerTcpAction',
  'handler',
])

/** Options that have changed and take effect at the next start, as they are written. */
export function needsRestart(before: Settings, now: Settings): readonly string[] {
  const differs = (of: (settings: Settings) => unknown): boolean =>
    JSON.stringify(of(before)) !== JSON.stringify(of(now))
  const names = optionRows.flatMap(([name, row]) =>
    !changeable.has(name) && differs(({ values }) => values[name]) ? [nameOf(row)] : [],
  )
  return differs(({ contacts }) => contacts) ? ['--contact', ...names] : names
}

const nameOf = ({ option, environment = [], xml = [] }: OptionRow<unknown>): string =>
  option === undefined ? (environment[0] ?? `<${xml[0]}>`) : `--${option}`

function fromCommandLine(
  name: OptionName,
  given: readonly CommandLineOption[],
): Source | undefined {
  return given.findLast((option) => option.name === name)
}

function fromEnvironment(
  row: OptionRow<unknown>,
  environment: ProgramEnvironment,
): Source | undefined {
  for (const spelled of row.environment ?? []) {
    const text = environment[spelled]
    if (text !== undefined && text !== '') return { spelled, text }
  }
  return undefined
}

function fromFile(row: OptionRow<unknown>, file: Element | undefined): Source | undefined {
  if (file === undefined) return undefined
  for (const path of row.xml ?? []) {
    // An empty element says yes to what is a flag, and nothing else.
    const text = textsAt(file, path).find((each) => each !== '' || row.kind === flag)
    if (text !== undefined) return { spelled: spelledInFile(path), text }
  }
  return undefined
}

const elementOf = (path: string): string => `<${path.replaceAll('@', ' ')}>`

const spelledInFile = (path: string): string => `${elementOf(path)} of the file`

/** @throws OptionError */
function readValue<T>({ kind }: OptionRow<T>, { spelled, text }: Source): T {
  const value = kind.read(text)
  if (value === undefined)
    throw new OptionError(`${spelled} is "${text}"; allowed is ${kind.allowed}`)
  return value
}

type OfContact = Partial<Record<'externalIp' | 'localNet' | 'dnsName', readonly Source[]>>

/** Options of a contact belong to the one before them. */
function contactsIn(given: readonly CommandLineOption[]): readonly ContactOption[] {
  const found: { readonly uri: string; readonly options: Record<string, Source[]> }[] = []
  for (const option of given) {
    if (option.name === 'contact') found.push({ uri: option.text, options: {} })
    else if (optionTable[option.name].isOfContact) {
      const last = found.at(-1)
      if (last === undefined)
        throw new OptionError(`${option.spelled} must stand behind the --contact that it is for`)
      ;(last.options[option.name] ??= []).push(option)
    }
  }
  return found.map(({ uri, options }) => contactOf(uri, options))
}

function contactsOfFile(file: Element | undefined): readonly ContactOption[] {
  if (file === undefined) return []
  const elements = (optionTable.contact.xml ?? []).flatMap((path) => elementsAt(file, path))
  return elements.map(({ text, attributes }) => {
    const sources = (attribute: string): readonly Source[] => {
      const value = attributes[attribute] ?? ''
      const spelled = spelledInFile(`sip/contacts/contact@${attribute}`)
      return value === '' ? [] : [{ spelled, text: value }]
    }
    return contactOf(text, {
      externalIp: sources('external-ip'),
      localNet: sources('local-net'),
      dnsName: sources('dns-names'),
    })
  })
}

function contactOf(uri: string, options: OfContact): ContactOption {
  const [external, ...more] = options.externalIp ?? []
  const [surplus] = more
  if (surplus) throw new OptionError(`${surplus.spelled} is given twice for the contact ${uri}`)
  return {
    uri,
    externalIp: external && readValue(optionTable.externalIp, external),
    localNets: (options.localNet ?? []).flatMap((each) => readValue(optionTable.localNet, each)),
    names: (options.dnsName ?? []).flatMap((each) => readValue(optionTable.dnsName, each)),
  }
}

/** The request handlers of one source: the command line, else the environment, else the file. */
function handlersIn(
  given: readonly CommandLineOption[],
  environment: ProgramEnvironment,
  file: Element | undefined,
): readonly HandlerSettings[] {
  const row = optionTable.httpHandler
  const source = fromCommandLine('httpHandler', given) ?? fromEnvironment(row, environment)
  if (source === undefined) return handlersOfFile(file)
  const method = fromCommandLine('httpMethod', given)
  const httpMethod = method ? readValue(optionTable.httpMethod, method) : 'get'
  return [{ sipMethod: '*', httpMethod, url: readValue(row, source), verifies: true }]
}

function handlersOfFile(file: Element | undefined): readonly HandlerSettings[] {
  if (file === undefined) return []
  const path = 'request-handlers/request-handler'
  return elementsAt(file, path).map(({ text, attributes }) => {
    const read = <T>(row: OptionRow<T>, attribute: string, whenAbsent: T): T => {
      const value = attributes[attribute] ?? ''
      const spelled = spelledInFile(`${path}@${attribute}`)
      return value === '' ? whenAbsent : readValue(row, { spelled, text: value })
    }
    return {
      sipMethod: read(optionTable.handlerSipMethod, 'sip-method', '*').toUpperCase(),
      httpMethod: read(optionTable.httpMethod, 'http-method', 'get'),
      url: readValue(optionTable.httpHandler, { spelled: spelledInFile(path), text }),
      verifies: read(optionTable.handlerVerifies, 'verify-peer', false),
    }
  })
}

const spammerHeaders: ReadonlySet<string> = new Set(['user-agent', 'from', 'to'])

function spammersOf(file: Element | undefined, notes: string[]): readonly SpammerHeader[] {
  if (file === undefined) return []
  return elementsAt(file, 'sip/spammers/header').flatMap(({ attributes, children }) => {
    const name = (attributes['name'] ?? '').toLowerCase()
    const values = children.map(({ text }) => text).filter((text) => text !== '')
    if (spammerHeaders.has(name)) return [{ name, values }]
    notes.push(`<sip/spammers/header> "${name}" changes nothing: allowed is User-Agent, From or To`)
    return []
  })
}

/** Elements and attributes of drachtio-server without a counterpart here, and slips of the pen. */
function unknownIn(file: Element): readonly string[] {
  const known = new Set(optionRows.flatMap(([, { xml = [] }]) => xml))
  const unknown = new Set(pathsIn(file).filter((path) => !known.has(path) && !isParent(path)))
  return [...unknown].map(elementOf)
}

/** An element that only holds others may be empty. */
const isParent = (path: string): boolean =>
  optionRows.some(([, { xml = [] }]) =>
    xml.some((each) => each.startsWith(`${path}/`) || each.startsWith(`${path}@`)),
  )

// The settings as options of the SIP server.
type ListenOptions = SipServerOptions['listen'][number]

const allContacts: ContactOption = {
  uri: 'sip:*;transport=udp,tcp',
  externalIp: undefined,
  localNets: [],
  names: [],
}

/** @throws OptionError */
export function serverOptions({ values, contacts }: Settings): SipServerOptions {
  const { secret, advertisedHost, webSocketOrigins, dnsServers } = values
  if (secret === undefined)
    throw new OptionError(
      'there is no secret: set --secret, DRACHTIO_SECRET, or the attribute secret of <admin>',
    )
  return {
    secret,
    listen: listenOf(values, contacts),
    admin: values.admin ?? { host: anyHost(values.address), port: values.port ?? 9_022 },
    adminTls: adminTlsOf(values),
    adminKeepAliveSeconds: values.keepAliveSeconds,
    frameLength: values.frameLength,
    metrics: metricsOf(values),
    capture: captureOf(values),
    timers: timersOf(values),
    outboundProxy: values.outboundProxy,
    defaultRefresher: values.defaultRefresher,
    alwaysSend180: values.alwaysSend180,
    detectsNat: values.disablesNatDetection !== true,
    ...(advertisedHost !== undefined && { advertisedHost }),
    ...(webSocketOrigins !== undefined && { webSocket: { origins: webSocketOrigins } }),
    ...(dnsServers !== undefined && { dnsServers }),
    ...tlsOf(values),
  }
}

export const screeningOf = ({ values, spammers }: Settings): SipServerOptions['screen'] =>
  screening({
    spammers,
    action: values.spammerAction ?? 'discard',
    streamAction: values.spammerTcpAction ?? 'discard',
    optionsUserAgent: values.optionsUserAgent,
    rejectsRegisterWithoutRealm: values.rejectsRegisterWithoutRealm === true,
  })

const anyHost = (host: string | undefined): string =>
  host === undefined || host === '*' ? '0.0.0.0' : host

function adminTlsOf({ adminTls, tlsPort, address }: Values): SipServerOptions['adminTls'] {
  if (adminTls !== undefined || tlsPort === undefined || tlsPort === 0) return adminTls
  return { host: anyHost(address), port: tlsPort }
}

function metricsOf({ metrics, metricsPort, metricsAddress }: Values): SipServerOptions['metrics'] {
  if (metrics !== undefined || metricsPort === undefined) return metrics
  return { host: anyHost(metricsAddress), port: metricsPort }
}

function captureOf({ homer, homerPort, homerId }: Values): SipServerOptions['capture'] {
  if (homer === undefined) return undefined
  if (homerId === undefined)
    throw new OptionError('--homer needs --homer-id, the number by which Homer knows this server')
  return { host: homer.host, port: homer.port || (homerPort ?? 9_060), agentId: homerId }
}

function timersOf({ t1, t2, t4, t1x64 }: Values): NonNullable<SipServerOptions['timers']> {
  const { t1Ms, t2Ms, t4Ms } = defaultTimers
  return { t1Ms: t1 ?? t1Ms, t2Ms: t2 ?? t2Ms, t4Ms: t4 ?? t4Ms, t1x64Ms: t1x64 }
}

function tlsOf(values: Values): { readonly tls?: TlsOptions } {
  const { certFile, keyFile, chainFile, caFile, minTlsVersion, ciphers } = values
  if (certFile === undefined && keyFile === undefined) return {}
  if (certFile === undefined || keyFile === undefined)
    throw new OptionError('--cert-file and --key-file belong together')
  const { clientCertificates, verifiesClients, verifiesServers } = values
  return {
    tls: {
      certFile,
      keyFile,
      chainFile,
      caFile,
      ciphers,
      minVersion: minTlsVersion,
      clientCertificates: clientCertificates ?? (verifiesClients === true ? 'required' : 'off'),
      verifyServers: verifiesServers !== 'off',
    },
  }
}

function listenOf(
  { listen = [], localDomain = [] }: Values,
  contacts: readonly ContactOption[],
): readonly ListenOptions[] {
  const named = listen.length === 0 && contacts.length === 0 ? [allContacts] : contacts
  const places = named.flatMap((contact) => listenersOf(contact))
  return [...listen, ...places].map((endpoint: ListenOptions) => ({
    ...endpoint,
    names: [...(endpoint.names ?? []), ...localDomain],
  }))
}

const protocols: ReadonlySet<string> = new Set(['udp', 'tcp', 'tls', 'ws', 'wss'])

/** `sip:host[:port][;transport=udp,tcp]`; `*` is every address. */
function listenersOf({
  uri,
  externalIp,
  localNets,
  names,
}: ContactOption): readonly ListenOptions[] {
  const parts =
    /^(sips?):(?:[^@]*@)?(?:\[([\d.:a-f]+)\]|([\w.-]+|\*))(?::(\d{1,5}))?((?:;[^;]*)*)$/i.exec(uri)
  const [, scheme = '', ipv6, name = '', port, params = ''] = parts ?? []
  const isSecure = scheme.toLowerCase() === 'sips'
  const transport = /;transport=([^;]*)/i.exec(params)?.[1]?.toLowerCase()
  const wanted = transport?.split(',') ?? (isSecure ? ['tls'] : ['udp', 'tcp'])
  const wrong = wanted.find((each) => !protocols.has(each))
  if (parts === null || wrong !== undefined || Number(port ?? 0) > 65_535)
    throw new OptionError(
      `contact "${uri}" is not understood; allowed is sip:host[:port][;transport=udp,tcp,ws], ` +
        'sips:host[:port][;transport=tls] or ;transport=wss',
    )
  // Checked against `protocols`.
  return (wanted as Protocol[]).map((each) => {
    const protocol = isSecure && each === 'ws' ? 'wss' : isSecure && each === 'tcp' ? 'tls' : each
    return {
      protocol,
      host: ipv6 ?? anyHost(name),
      port: port === undefined ? defaultPort(protocol) : Number(port),
      advertisedHost: externalIp,
      localNets,
      names,
    }
  })
}
