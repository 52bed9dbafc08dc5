/** A customer as a body: the payer of calls, its numbers and its limits (SPECIFICATION.md §13). */
import { z } from 'zod'
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../auth/passwords.ts'
import { limit, money, name, numberOrUserName, reference } from '../../http/fields.ts'

/** ISO 4217. */
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/, 'must be three capital letters, such as "USD"')

export const customerBody = z.strictObject({
  name,
  tenant: reference.nullish(),
  email: z.email().max(254).nullish(),
  password: z
    .string()
    .min(MIN_PASSWORD_LENGTH)
    .max(MAX_PASSWORD_LENGTH)
    .nullish()
    .describe('Write only: the login of the edge. Null removes the login.'),
  is_active: z.boolean().default(true),
  rate_plan: reference.nullish(),
  rate_plan_id: reference.nullish(),
  numbers: z.array(numberOrUserName).max(1_000).default([]),
  credit_limit: money().default(0).describe('How far the balance may go below zero.'),
  max_concurrent_calls: limit
    .default(0)
    .describe('0: unlimited, here and in the next three fields.'),
  max_cps: limit.default(0).describe('Calls per second.'),
  max_daily_spend: money().default(0),
  max_call_seconds: z.int().min(0).max(86_400).default(0),
  low_balance_threshold: money().default(0),
  currency: currency.nullish().describe("Absent: the rate plan's, or USD."),
  balance: money().optional().describe('Credited once, the first time that it is given.'),
})

export type CustomerBody = z.output<typeof customerBody>
