/** Fields that the bodies of changes share, in tools and in the API. */
import { z } from 'zod'
import { text } from '../http/fields.ts'
import { cleanText } from '../http/clean-text.ts'

const MIN_DURATION_SECONDS = 60
/** Thirty days. */
const MAX_DURATION_SECONDS = 2_592_000

/** Why a change is made: it is stored, and shown with the change later. */
export const changeReason = text(500)
  .min(3)
  .refine((value) => value.trim().length >= 3, 'must have at least 3 characters')
  // An agent may quote what it has read: a token in it is not stored.
  .transform((value) => cleanText(value))
  .describe('Why, in 3 to 500 characters; it is stored with the change.')

export const changeDuration = z
  .int()
  .min(MIN_DURATION_SECONDS)
  .max(MAX_DURATION_SECONDS)
  .describe('Seconds after which the platform undoes it. Absent: until it is undone.')

export const dryRun = z
  .boolean()
  .default(false)
  .describe('True: tells the effect, and changes nothing.')
