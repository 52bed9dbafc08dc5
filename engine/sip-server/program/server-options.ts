/** What the settings mean for the SIP server. Pure. */
import { OptionError } from '../errors.ts'
import { defaultPort, type Protocol } from '../flow.ts'
import type { SipServerOptions, TlsOptions } from '../options.ts'
import { screening } from '../rules/screening.ts'
import { defaultTimers } from '../transaction/timers.ts'
import type { Contact, Settings } from './settings.ts'
import type { Values } from './option-table.ts'

type Listen = SipServerOptions['listen'][number]

const allContacts: Contact = {
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
  contacts: readonly Contact[],
): readonly Listen[] {
  const named = listen.length === 0 && contacts.length === 0 ? [allContacts] : contacts
  const places = named.flatMap((contact) => listenersOf(contact))
  return [...listen, ...places].map((place: Listen) => ({
    ...place,
    names: [...(place.names ?? []), ...localDomain],
  }))
}

const protocols: ReadonlySet<string> = new Set(['udp', 'tcp', 'tls', 'ws', 'wss'])

/** `sip:host[:port][;transport=udp,tcp]`; `*` is every address. */
function listenersOf({ uri, externalIp, localNets, names }: Contact): readonly Listen[] {
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
