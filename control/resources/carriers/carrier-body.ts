/** Request body of carriers with their gateways (SPECIFICATION.md §4.7). */
import { isIPv4 } from 'node:net'
import { z } from 'zod'
import {
  maxNumberRules,
  maxRuleLength,
  numberRuleProblem,
} from '../../../schema/rules/number-rule.ts'
import type { ErrorDetail } from '../../http/api-error.ts'
import {
  domain,
  host,
  isAddress,
  limit,
  name,
  numberOrUserName,
  reference,
  text,
} from '../../http/fields.ts'
import { mediaFields, mediaPolicy } from '../media-fields.ts'
import { preset } from '../presets.ts'
import { stripHeaders } from '../stripped-headers.ts'
import { transport } from '../dispatcher/dispatcher-body.ts'

const gatewayBody = z
  .strictObject({
    host,
    port: z
      .int()
      .min(0)
      .max(65_535)
      .default(0)
      .describe(
        '0: use the SRV records of the host, else port 5060 (5061 for TLS), and accept calls from any port.',
      ),
    transport: transport.default('udp'),
    netmask: z
      .int()
      .min(8)
      .max(128)
      .optional()
      .describe('Prefix length of the source network. Defaults to the single address.'),
    inbound: z.boolean().default(true),
    outbound: z.boolean().default(true),
    priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
    weight: z.int().min(1).max(100).default(100),
  })
  .superRefine(({ host: address, netmask }, context) => {
    if (netmask === undefined) return
    if (!isAddress(address))
      context.addIssue({
        code: 'custom',
        path: ['netmask'],
        message: 'requires an IP address as host',
      })
    else if (isIPv4(address) && netmask > 32)
      context.addIssue({
        code: 'custom',
        path: ['netmask'],
        message: 'must be at most 32 for IPv4',
      })
  })
  .transform((gateway) => ({
    ...gateway,
    netmask: gateway.netmask ?? (gateway.host.includes(':') ? 128 : 32),
  }))

export type GatewayBody = z.output<typeof gatewayBody>

const numberRule = z
  .strictObject({ match: z.string().max(maxRuleLength), replace: z.string().max(maxRuleLength) })
  .superRefine((rule, context) => {
    const message = numberRuleProblem(rule)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['match'], message })
  })

const numberRules = z.array(numberRule).max(maxNumberRules).default([])

const callerId = z
  .strictObject({
    mode: z.enum(['pass', 'fixed', 'pai']).default('pass'),
    value: numberOrUserName.nullish(),
  })
  .refine(({ mode, value }) => mode !== 'fixed' || typeof value === 'string', {
    path: ['value'],
    message: 'is required with mode "fixed"',
  })

/** Used in quotes in digest credentials, and in SIP URIs. */
const userName = z.string().regex(/^[0-9A-Za-z*+._@-]{1,128}$/, 'must be a SIP user name')

const auth = z.strictObject({
  type: z
    .enum(['ip', 'digest', 'register'])
    .default('ip')
    .describe(
      'How the platform authenticates to the carrier: by IP address, by digest, or by registration.',
    ),
  username: userName.nullish().describe('Required for `digest` and `register`.'),
  password: text(128)
    .min(1)
    .nullish()
    .describe('Write only. Absent in an update: keeps the stored password.'),
  realm: text(253)
    .min(1)
    .nullish()
    .describe('Only challenges of this realm are answered. Absent: any realm.'),
  from_user: userName.nullish().describe('User part of the From header. Defaults to the caller.'),
  from_domain: domain
    .nullish()
    .describe('Host part of the From header. Defaults to the platform’s address.'),
  expires: z
    .int()
    .min(60)
    .max(86_400)
    .nullish()
    .describe('Requested registration lifetime in seconds. Defaults to 3600.'),
})

export const carrierBody = z.strictObject({
  name,
  tenant: reference.nullish(),
  customer: reference.nullish().describe('The customer that pays for calls from this carrier.'),
  customer_id: reference.nullish(),
  payer: z
    .enum(['customer', 'from_number'])
    .default('customer')
    .describe(
      'The payer of calls from this carrier. `customer`: the carrier’s customer. `from_number`, only without a customer: the customer that owns the number in From, within the carrier’s tenant if it has one.',
    ),
  is_active: z.boolean().default(true),
  direction: z.enum(['in', 'out', 'both']).default('both'),
  gateways: z.array(gatewayBody).min(1).max(32),
  auth: auth.default({ type: 'ip' }),
  caller_id: callerId.default({ mode: 'pass' }),
  number_rules: z.strictObject({ in: numberRules, out: numberRules }).default({ in: [], out: [] }),
  ...mediaFields,
  media: mediaPolicy.default('bypass').describe(mediaFields.media.description ?? ''),
  strip_headers: stripHeaders,
  preset,
  max_calls: limit.default(0).describe('0: unlimited.'),
  max_cps: limit.default(0).describe('0: unlimited.'),
  rate_plan: reference
    .nullish()
    .describe('Prices of the carrier, compared by routes with mode "lcr".'),
  rate_plan_id: reference.nullish(),
  inbound_set: reference
    .nullish()
    .describe('Number or name of the dispatcher set for its calls. Absent: inbound routes decide.'),
  inbound_set_id: reference.nullish(),
})

export type CarrierBody = z.output<typeof carrierBody>

/** Fields that have no effect beside others. */
export const unsupportedInCarrier = (body: CarrierBody): readonly (ErrorDetail | false)[] =>
  withoutEffect(body.auth)

/** The password is checked elsewhere: an update may keep the stored one. */
function withoutEffect({ type, ...fields }: CarrierBody['auth']): (ErrorDetail | false)[] {
  const credentials = ['username', 'password', 'realm'] as const
  const useless = type === 'ip' ? [...credentials, 'expires' as const] : ['expires' as const]
  return type === 'register'
    ? []
    : useless.map(
        (field) =>
          fields[field] != null && {
            path: `auth.${field}`,
            message: `has no effect with auth "${type}"`,
          },
      )
}
