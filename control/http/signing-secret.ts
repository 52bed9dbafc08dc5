/** The secret by which a receiver knows requests of ours, as the API shows and rotates it. */
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'

const DAY_SECONDS = DAY_MS / 1_000

/** Fields of an answer that shows a new secret. */
export const newSecretShown = {
  secret: z
    .string()
    .optional()
    .describe(
      'The signing secret. Shown only in this response: absent when an Idempotency-Key ' +
        'repeats it.',
    ),
  secret_omitted: z.string().optional().describe('Why a repeated response has no secret.'),
}

/** The check vector of the Standard Webhooks specification. */
export const exampleNewSecret = { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }

export const rotateBody = z.strictObject({
  overlap_seconds: z
    .int()
    .min(0)
    .max(30 * DAY_SECONDS)
    .default(DAY_SECONDS)
    .describe('Seconds during which the old secret also signs.'),
})
