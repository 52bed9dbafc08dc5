/** Rate plans and rates as bodies (SPECIFICATION.md §13.1). */
import { z } from 'zod'
import { patchOf } from '../patch.ts'
import { money, name, prefix, reference, text, time } from '../../http/fields.ts'
import { currency } from '../customers/customer-body.ts'

export const ratePlanBody = z.strictObject({
  name,
  tenant: reference.nullish(),
  currency: currency.default('USD'),
  decimals: z.int().min(0).max(6).default(4).describe('Prices are rounded up to these decimals.'),
})

export type RatePlanBody = z.output<typeof ratePlanBody>

/** Enough for currencies of small units, such as VND and IDR. */
const price = money({ max: 1_000_000 })

/** 86400: a day. */
const seconds = z.int().max(86_400)

export const rateBody = z.strictObject({
  rate_plan: reference.nullish(),
  rate_plan_id: reference.nullish(),
  tenant: reference
    .nullish()
    .describe('The tenant of the plan; needed where several tenants have a plan of this name.'),
  prefix: prefix.describe('Start of the called number; empty: every number.'),
  description: text(200).nullish(),
  rate_per_minute: price,
  connect_fee: price.default(0),
  first_increment: seconds
    .min(0)
    .default(0)
    .describe('The least number of seconds that is charged.'),
  first_rate_per_minute: price
    .optional()
    .describe('Price of the first increment; absent: `rate_per_minute`.'),
  increment: seconds.min(1).default(1).describe('Seconds of each further step that is charged.'),
  blocked: z.boolean().default(false).describe('Calls to this prefix are refused.'),
  effective_from: time.nullish(),
  effective_to: time.nullish().describe('The first moment at which the rate no longer applies.'),
})

export type RateBody = z.output<typeof rateBody>

/** A rate of a seed file: one that is stored keeps what the file does not name. */
export const seedRateBody = patchOf(rateBody).extend({ prefix: rateBody.shape.prefix })

export type SeedRateBody = Partial<RateBody> & Pick<RateBody, 'prefix'>
