/** Request bodies of outbound and inbound routes (SPECIFICATION.md §4.7 and §10.2). */
import { z } from 'zod'
import { extensionNumber } from '../extensions/extension-body.ts'
import { domain, name, prefix, reference } from '../../http/fields.ts'

export const outboundRouteBody = z.strictObject({
  name,
  tenant: reference.nullish(),
  customer: reference.nullish().describe('Absent: every customer.'),
  customer_id: reference.nullish(),
  carrier: reference.nullish().describe('Required unless mode is "block".'),
  carrier_id: reference.nullish(),
  prefix: prefix.default('').describe('Start of the called number; empty: every number.'),
  priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
  weight: z.int().min(1).max(100).default(100),
  mode: z
    .enum(['static', 'lcr', 'block'])
    .default('static')
    .describe('Routes with mode "lcr" and the same prefix are tried in order of carrier price.'),
  strip: z
    .int()
    .min(0)
    .max(32)
    .default(0)
    .describe('Number of digits removed from the start of the number.'),
  prepend: z
    .string()
    .regex(/^(?:[0-9*#]{0,20}|\+[0-9*#]{0,19})$/, 'must be up to 20 digits, *, # or a leading +')
    .default('')
    .describe('Added at the start of the number, after `strip`.'),
  is_active: z.boolean().default(true),
  emergency: z.boolean().default(false).describe('Emergency calls skip the wallet and all limits.'),
})

export type OutboundRouteBody = z.output<typeof outboundRouteBody>

/** `set_id`, `extension` or `agent` is the target. */
export const inboundRouteBody = z.strictObject({
  name,
  tenant: reference.nullish(),
  carrier: reference.nullish().describe('Absent: any carrier.'),
  carrier_id: reference.nullish(),
  prefix: prefix.nullish().describe('Start of the called number; absent: every number.'),
  domain: domain.nullish().describe('Domain of the Request-URI. Absent: every domain.'),
  priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
  is_active: z.boolean().default(true),
  set: reference.nullish().describe('Number or name of a dispatcher set.'),
  set_id: reference.nullish(),
  extension: extensionNumber.nullish(),
  extension_domain: domain
    .nullish()
    .describe('Domain of the extension. May be absent if only one domain has the extension.'),
  agent: name.nullish().describe('Name of an AI agent.'),
})

export type InboundRouteBody = z.output<typeof inboundRouteBody>
