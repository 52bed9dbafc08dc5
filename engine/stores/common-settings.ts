/**
 * Settings that all instances of an installation must have alike: with two values a call has two
 * prices, is admitted by one instance and refused by the other, or one instance removes what the
 * other keeps. Lists are compared without their order.
 */
import { createHmac } from 'node:crypto'
import type { CommonSettings } from '../../schema/instances/settings-of-instances.ts'
import type { Config } from '../config.ts'

type Value = string | number | readonly string[] | undefined
type Values<V extends Value> = Readonly<Record<string, (config: Config) => V>>

const shown: Values<Value> = {
  // These decide what a call costs, and which prefixes hold it.
  EXIT_CODES: ({ exitCodes }) => exitCodes,
  UNKNOWN_CALLER: ({ unknownCaller }) => unknownCaller,
  OCS_URL: ({ ocs }) => ocs.url?.replace(/(:\/\/)[^/?#]*@/, '$1…@'),
  OCS_FAIL_MODE: ({ ocs }) => ocs.failMode,
  MEDIA_TIMEOUT_SECONDS: ({ mediaTimeoutMs }) => mediaTimeoutMs / 1_000,
  MEDIA_TIMEOUT_CHARGE: ({ mediaTimeoutCharge }) => mediaTimeoutCharge,
  // Which calls and requests are admitted.
  TRUSTED_SOURCES: ({ trustedSources }) => trustedSources,
  EDGE_PROXIES: ({ edgeProxies }) =>
    edgeProxies.map(({ network, tenants }) => `${network}=${tenants.toSorted().join('+')}`),
  TENANT_NETWORKS: ({ tenantNetworks }) => tenantNetworks,
  FOREIGN_DOMAINS: ({ sip }) => sip.foreignDomains,
  RECORDING_REQUIRED: ({ recording }) => (recording?.isRequired === true ? 'on' : 'off'),
  WEBHOOK_PRIVATE_TARGETS: ({ webhookPrivateTargets }) => webhookPrivateTargets,
  STIR_MAX_AGE_SECONDS: ({ stir }) => stir.maxAgeSeconds,
  STIR_CERTIFICATE_HOSTS: ({ stir }) => stir.certificateHosts,
  STIR_PRIVATE_TARGETS: ({ stir }) => stir.privateTargets,
  // Each instance removes rows of all of them.
  CDR_RETENTION_DAYS: ({ retention }) => retention.callRecordDays,
  AUDIT_RETENTION_DAYS: ({ retention }) => retention.auditDays,
  RECORDING_RETENTION_DAYS: ({ retention }) => retention.recordingDays,
}

const secret: Values<string | undefined> = {
  JWT_SECRET: ({ jwtSecret }) => jwtSecret,
  PAYMENT_WEBHOOK_SECRET: ({ paymentWebhookSecret }) => paymentWebhookSecret,
}

export const commonSettingNames: readonly string[] = Object.keys({ ...shown, ...secret })

/** The purpose for which `Secrets.keyFor` derives the key of the digests. */
export const SETTINGS_KEY = 'settings of nodes'

/** @param key secrets are shown as digests under it; absent: they are left out. */
export function commonSettings(config: Config, key?: Buffer): CommonSettings {
  const texts = Object.entries(shown).map(
    ([name, read]) => [name, shortened(textOf(read(config)))] as const,
  )
  const digests = Object.entries(secret).flatMap(([name, read]) => {
    const value = read(config)
    if (key === undefined) return []
    return [
      [name, value === undefined ? UNSET : `secret ${digestOf(`${name} ${value}`, key)}`] as const,
    ]
  })
  return Object.fromEntries<string>([...texts, ...digests])
}

const UNSET = 'unset'

function textOf(value: Value): string {
  if (value === undefined) return UNSET
  if (typeof value !== 'object') return String(value)
  return value.length === 0 ? 'none' : value.toSorted().join(',')
}

const MAX_TEXT = 200

/** A list of networks may be long: the digest of all of it tells of a difference in the rest. */
const shortened = (text: string): string =>
  text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}… (${digestOf(text, 'text')})`

const digestOf = (text: string, key: Buffer | string): string =>
  createHmac('sha256', key).update(text).digest('hex').slice(0, 12)
