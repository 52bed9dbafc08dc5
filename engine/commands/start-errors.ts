/**
 * Why a start or a command failed, as one sentence for the operator that names the setting to
 * change.
 */
import type { Config } from '../config.ts'
import { HookFileError } from '../hooks/hook-host.ts'
import { formatHostAndPort, type HostAndPort } from '../setting-kinds.ts'
import { settings } from '../settings.ts'
import { CertificateError, ListenError } from '../sip-server/index.ts'

/** System errors in plain words. */
const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
}

/** Why a file could not be read. */
export function fileProblem(error: unknown): string {
  const reason = reasons[codeOf(error)]
  if (reason !== undefined) return reason
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
}

/** Why an address cannot be listened on, behind the address. */
const listenReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another program; stop that one, or set another port',
  EADDRNOTAVAIL: 'is not an address of this machine',
  EACCES: 'is not open to this user: a port below 1024 needs root or CAP_NET_BIND_SERVICE',
  ENOTFOUND: 'has a host name that is not known',
}

/** Undefined: neither an address, a certificate nor the file of hooks is the reason. */
export function startProblem(error: unknown, config: Config): string | undefined {
  if (error instanceof CertificateError) {
    const { file, cause } = error
    return `${certificateSetting(file, config)}: cannot use ${file} for TLS: ${fileProblem(cause)}`
  }
  if (error instanceof HookFileError) return `${settings.hooksFile.name}: ${error.message}`
  const address = addressOf(error)
  const reason = listenReasons[codeOf(error)]
  if (address === undefined || reason === undefined)
    return error instanceof ListenError ? error.message : undefined
  const protocol = error instanceof ListenError ? `${error.what}/` : ''
  const setting = listenSetting(address, protocol !== '', config)
  return `${setting}: ${protocol}${formatHostAndPort(address)} ${reason} (${codeOf(error)})`
}

function addressOf(error: unknown): HostAndPort | undefined {
  if (error instanceof ListenError) return error
  if (!(error instanceof Error)) return undefined
  // Node.js names the address of a listener, and a host name that it could not resolve.
  const { address, hostname, port } = error as Error & Readonly<Record<string, unknown>>
  const host = address ?? hostname
  if (typeof host !== 'string') return undefined
  return { host, port: typeof port === 'number' ? port : 0 }
}

function listenSetting(address: HostAndPort, isOfSipServer: boolean, config: Config): string {
  const isAddress = (other: HostAndPort | undefined): boolean =>
    other?.host === address.host && (address.port === 0 || other.port === address.port)
  const isSip = config.sip.listen.some((listener) => isAddress(listener))
  if (isOfSipServer && isAddress(config.drachtio.listen) && !isSip)
    return settings.drachtioListen.name
  if (isOfSipServer) return settings.sipListen.name
  if (isAddress(config.mediaDtmfListen)) return settings.mediaDtmfListen.name
  return isAddress(config.edgeListen) && !isAddress(config.apiListen)
    ? settings.edgeListen.name
    : settings.apiListen.name
}

function certificateSetting(file: string, { sip: { tls }, hep, apiTls, edgeTls }: Config): string {
  if (file === apiTls?.certFile) return settings.apiTlsCert.name
  if (file === apiTls?.keyFile) return settings.apiTlsKey.name
  if (file === edgeTls?.certFile) return settings.edgeTlsCert.name
  if (file === edgeTls?.keyFile) return settings.edgeTlsKey.name
  if (file === tls?.keyFile) return settings.sipTlsKey.name
  if (file === tls?.chainFile) return settings.sipTlsChain.name
  if (file === (tls ?? hep?.tls)?.caFile) return settings.sipTlsCa.name
  return settings.sipTlsCert.name
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''
