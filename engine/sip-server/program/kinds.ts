/**
 * The kinds of values that options take: how their text is read, and how what is allowed is said.
 */
import { isIP, isIPv4 } from 'node:net'
import { isApplicationUri } from '../clients/dialer.ts'
import type { Protocol } from '../../../schema/sip/message.ts'

export interface OptionKind<T> {
  /** Undefined: not allowed. */
  readonly read: (text: string) => T | undefined
  /** Completes the sentence "allowed is …". */
  readonly allowed: string
}

export interface OptionEndpoint {
  /** IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

export interface ListenEndpoint extends OptionEndpoint {
  readonly protocol: Protocol
}

export const text: OptionKind<string> = {
  read: (value) => (value === '' ? undefined : value),
  allowed: 'a text',
}

export const wholeNumber = (least: number, most: number): OptionKind<number> => ({
  read: (value) => {
    const number = /^\d{1,10}$/.test(value) ? Number(value) : -1
    return number >= least && number <= most ? number : undefined
  },
  allowed: `a whole number from ${least} to ${most}`,
})

export const port = wholeNumber(1, 65_535)

const words: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  '1': true,
  '': true,
  false: false,
  no: false,
  off: false,
  '0': false,
}

/** An option without a value, or an element without a text, is `true`. */
export const flag: OptionKind<boolean> = {
  read: (value) => words[value.toLowerCase()],
  allowed: 'true, yes, on, 1, false, no, off or 0',
}

export const oneOf = <const Word extends string>(
  ...allowed: readonly Word[]
): OptionKind<Word> => ({
  read: (value) => allowed.find((word) => word === value.toLowerCase()),
  allowed: allowed.join(' or '),
})

export const host: OptionKind<string> = {
  read: (value) => (/^[\w.-]{1,253}$/.test(value) || isIP(value) !== 0 ? value : undefined),
  allowed: 'an IP address or a host name',
}

export const ipAddress: OptionKind<string> = {
  read: (value) => (isIP(value) === 0 ? undefined : value),
  allowed: 'an IP address',
}

/** `host:port`, `[::1]:port`. */
function endpointIn(value: string): OptionEndpoint | undefined {
  const parts = /^(?:\[([\d.:a-f]+)\]|([\w.-]{1,253})):(\d{1,5})$/i.exec(value)
  if (parts === null || Number(parts[3]) > 65_535) return undefined
  return { host: parts[1] ?? parts[2] ?? '', port: Number(parts[3]) }
}

export const endpoint: OptionKind<OptionEndpoint> = {
  read: endpointIn,
  allowed: 'host:port, such as 127.0.0.1:8080 or [::1]:8080 (port 0: any free one)',
}

/** A port alone is one of all addresses of the machine. */
export const endpointOrPort: OptionKind<OptionEndpoint> = {
  read: (value) => {
    const alone = port.read(value)
    return alone === undefined ? endpointIn(value) : { host: '0.0.0.0', port: alone }
  },
  allowed: 'port or host:port',
}

export const endpointOrHost = (defaultPort: number): OptionKind<OptionEndpoint> => ({
  read: (value) => {
    const alone = host.read(value)
    return alone === undefined ? endpointIn(value) : { host: alone, port: defaultPort }
  },
  allowed: 'host or host:port',
})

const protocols: readonly Protocol[] = ['udp', 'tcp', 'tls', 'ws', 'wss']

function listenEndpoint(value: string): ListenEndpoint | undefined {
  const [name, address = ''] = value.split('/', 2)
  const protocol = protocols.find((known) => known === name)
  const standard = protocol === 'tls' || protocol === 'wss' ? 5_061 : 5_060
  const bound = address.endsWith(']') ? endpointIn(`${address}:${standard}`) : endpointIn(address)
  const found = bound ?? endpointOrHost(standard).read(address)
  return protocol && found && { protocol, ...found }
}

export const listenEndpoints: OptionKind<readonly ListenEndpoint[]> = {
  read: (value) => allOf(value, listenEndpoint),
  allowed: `a comma list of ${protocols.join('|')}/host[:port], such as udp/0.0.0.0:5060`,
}

export const hosts: OptionKind<readonly string[]> = {
  read: (value) => allOf(value.replaceAll(/[\s;,]+/g, ','), host.read),
  allowed: 'host names, between commas',
}

export const networks: OptionKind<readonly string[]> = {
  read: (value) =>
    allOf(value, (network) => {
      const [address = '', bits = ''] = network.split('/')
      const most = isIPv4(address) ? 32 : 128
      const isBits = wholeNumber(0, most).read(bits) !== undefined
      return isIP(address) !== 0 && isBits ? network : undefined
    }),
  allowed: 'a network such as 10.132.0.0/20, or several between commas',
}

export const origins: OptionKind<readonly string[]> = {
  read: (value) =>
    allOf(value, (origin) => (/^https?:\/\/[^/\s]+$/i.test(origin) ? origin : undefined)),
  allowed: 'a comma list of origins, such as https://phone.example.com',
}

export const dnsServers: OptionKind<readonly string[]> = {
  read: (value) =>
    allOf(value, (server) => (isIP(server) !== 0 || endpointIn(server) ? server : undefined)),
  allowed: 'a comma list of address[:port]',
}

export const handlerUri: OptionKind<string> = {
  read: (value) => {
    const isHttp = /^https?:/i.test(value) && URL.canParse(value)
    return isHttp || isApplicationUri(value) ? value : undefined
  },
  allowed: 'a URL of http or https, or tcp://host:port, tls://host:port',
}

export const applicationUri: OptionKind<string> = {
  read: (value) => (isApplicationUri(value) ? value : undefined),
  allowed: 'tcp://host:port or tls://host:port',
}

/** TLS before 1.2 is broken (RFC 8996): what asks for it gets 1.2. */
export const tlsVersion: OptionKind<'TLSv1.2' | 'TLSv1.3'> = {
  read: (value) => {
    const version = /^1(?:\.([0-3])\d*)?$/.exec(value)
    if (version === null) return undefined
    return version[1] === '3' ? 'TLSv1.3' : 'TLSv1.2'
  },
  allowed: '1.0, 1.1, 1.2 or 1.3; below 1.2 means 1.2',
}

export const sipUri: OptionKind<string> = {
  read: (value) => (/^sips?:[^\s<>]+$/i.test(value) ? value : undefined),
  allowed: 'a SIP URI, such as sip:10.0.0.9:5060;transport=tcp',
}

function allOf<T>(value: string, read: (each: string) => T | undefined): readonly T[] | undefined {
  const found = value.split(',').map((each) => read(each.trim()))
  const good = found.filter((each) => each !== undefined)
  return good.length === found.length ? good : undefined
}
