/**
 * New requests that no application hears of: of spammers, probes, and registrations without a
 * domain. Pure.
 */
import { unwatchFile, watchFile } from 'node:fs'
import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'
import { OptionError } from '../errors.ts'
import { isReliable } from '../flow.ts'
import { parseNameAddr, parseUri } from '../../../schema/sip/fields.ts'
import type { ServerLog, NewRequest, Screening } from '../options.ts'

export interface ScreeningRules {
  readonly spammers: readonly { readonly name: string; readonly values: readonly string[] }[]
  /** The answer to spammers by UDP: 603, or none. */
  readonly action: 'reject' | 'discard'
  /** The action on streams. */
  readonly streamAction: 'reject' | 'discard'
  /** OPTIONS with exactly this User-Agent get 200. */
  readonly optionsUserAgent: string | undefined
  /** REGISTER for an IPv4 address gets 403. */
  readonly rejectsRegisterWithoutRealm: boolean
}

/** Undefined: there is nothing to look for. */
export function screening(
  rules: ScreeningRules,
): ((request: NewRequest) => Screening | undefined) | undefined {
  const { spammers, optionsUserAgent, rejectsRegisterWithoutRealm } = rules
  const looksForSpammers = spammers.some(({ values }) => values.length > 0)
  if (!looksForSpammers && optionsUserAgent === undefined && !rejectsRegisterWithoutRealm)
    return undefined
  return (request) => {
    if (isOfSpammer(request, spammers))
      return isReliable(request.protocol) ? outcomes[rules.streamAction] : outcomes[rules.action]
    if (request.method === 'OPTIONS' && optionsUserAgent !== undefined)
      return request.get('User-Agent') === optionsUserAgent ? taken : undefined
    if (request.method === 'REGISTER' && rejectsRegisterWithoutRealm)
      return isIPv4(parseUri(request.uri)?.host ?? '') ? forbidden : undefined
    return undefined
  }
}

const outcomes: Readonly<Record<ScreeningRules['action'], Screening>> = {
  reject: { status: 603, reason: 'Decline' },
  discard: 'drop',
}
const taken: Screening = { status: 200, reason: 'OK' }
const forbidden: Screening = { status: 403, reason: 'Forbidden' }

const isOfSpammer = (request: NewRequest, spammers: ScreeningRules['spammers']): boolean =>
  spammers.some(({ name, values }) => {
    const text = judgedText(request, name)
    return text !== '' && values.some((value) => text.includes(value))
  })

/** The user alone counts in From and To. */
function judgedText({ get }: NewRequest, name: string): string {
  if (name === 'user-agent') return get('User-Agent') ?? ''
  const value = get(name === 'from' ? 'From' : 'To')
  return value === undefined ? '' : (parseUri(parseNameAddr(value)?.uri ?? '')?.user ?? '')
}

/** How often the file is looked at. Milliseconds. */
const defaultWatchMs = 5_000
const maxEntries = 200_000

/** Addresses by themselves: there may be many. */
export interface DenyList {
  readonly addresses: ReadonlySet<string>
  readonly networks: BlockList
  /** Lines that are neither an address, nor a network. */
  readonly wrong: readonly string[]
}

/** One address or network a line; `#` begins a remark. Pure. */
export function readDenyList(text: string): DenyList {
  const addresses = new Set<string>()
  const networks = new BlockList()
  const wrong: string[] = []
  const entries = text.split('\n').flatMap((line) => line.split('#', 1)[0]?.trim() || [])
  for (const entry of entries.slice(0, maxEntries)) {
    const [address = '', bits] = entry.split('/')
    const isWrong = isIP(address) === 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))
    const length = Number(bits)
    if (isWrong || length > (isIPv6(address) ? 128 : 32)) wrong.push(entry)
    else if (bits === undefined) addresses.add(canonical(address))
    else networks.addSubnet(address, length, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  if (entries.length > maxEntries) wrong.push(`all after line ${maxEntries}`)
  return { addresses, networks, wrong }
}

/**
 * The address in the spelling of a socket (RFC 5952). One with a zone stays as it is: its zone
 * would be lost.
 */
function canonical(address: string): string {
  if (!isIPv6(address) || address.includes('%')) return address
  return unmapped(new SocketAddress({ address, family: 'ipv6' }).address)
}

/** The IPv4 address of an IPv4-mapped one (RFC 4291 §2.5.5.2). */
function unmapped(address: string): string {
  if (!address.startsWith('::ffff:')) return address
  const inner = address.slice('::ffff:'.length)
  return isIPv4(inner) ? inner : address
}

/** @param address as a socket spells it */
export const isListed = ({ addresses, networks }: DenyList, address: string): boolean =>
  addresses.has(unmapped(address)) || networks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

export interface Blacklist {
  readonly denies: (address: string) => boolean
  /** Reads it now. */
  readonly refresh: () => void
  readonly stop: () => void
}

/**
 * @param read the text of the file; undefined: there is none
 * @throws OptionError when there is none at the start; later what was read last holds.
 */
export function watchBlacklist(
  path: string,
  read: (path: string) => string | undefined,
  log: ServerLog,
  watchMs = defaultWatchMs,
): Blacklist {
  const readAndLog = (text: string): DenyList => {
    const found = readDenyList(text)
    const { wrong, addresses } = found
    if (wrong.length > 0)
      log('warn', 'some lines of the blacklist are not addresses', {
        path,
        first: wrong.slice(0, 3),
      })
    log('info', 'the blacklist was read', { path, addresses: addresses.size })
    return found
  }
  const start = read(path)
  if (start === undefined) throw new OptionError(`cannot read ${path}`)
  let denied = readAndLog(start)
  const refresh = (): void => {
    const text = read(path)
    if (text === undefined) return log('error', 'the blacklist cannot be read', { path })
    denied = readAndLog(text)
  }
  watchFile(path, { interval: watchMs, persistent: false }, refresh)
  return {
    denies: (address) => isListed(denied, address),
    refresh,
    stop: () => unwatchFile(path, refresh),
  }
}
