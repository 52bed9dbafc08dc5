/** Request body of extensions (SPECIFICATION.md §2.3 and §8). */
import { z } from 'zod'
import { mediaFields } from '../media-fields.ts'
import { domain, reference, text } from '../../http/fields.ts'

export const extensionNumber = z
  .string()
  .regex(/^(?:[0-9*#]{2,20}|\+[0-9*#]{1,19})$/, 'must be 2 to 20 digits, *, # or a leading +')

export const extensionBody = z.strictObject({
  extension: extensionNumber,
  password: z
    .string()
    .min(8)
    .max(128)
    .optional()
    .describe('Required at creation. Write only: stored as digest secrets.')
    .meta({ format: 'password' }),
  display_name: text(100).min(1),
  voicemail_enabled: z.boolean().default(true),
  call_recording: z
    .enum(['always', 'never', 'on_demand'])
    .default('always')
    .describe('Whether calls are recorded, where recording is set up.'),
  email: z.email().max(254).nullish(),
  tenant: reference.nullish(),
  domain: domain
    .nullish()
    .describe("Defaults to the domain of the key, or to the tenant's first domain."),
  customer: reference.nullish().describe('The customer that pays for its calls.'),
  customer_id: reference.nullish(),
  ...mediaFields,
})

export type ExtensionBody = z.output<typeof extensionBody>
