import { expect, test } from 'vitest'
import { z } from 'zod'
import { problemSentence } from '../../../../../control/console/web/parts/problem-sentence.ts'

test.each([
  ['must be at most 32', 'It must be at most 32.'],
  ['is already taken', 'It is already taken.'],
  ['contains a control character', 'It contains a control character.'],
  ['Unknown field: did you mean "name"?', 'There is no such field: did you mean "name"?'],
  ['A topup cannot be negative', 'A topup cannot be negative.'],
])('%s is said as a sentence', (message, sentence) => {
  expect(problemSentence(message)).toBe(sentence)
})

test('the usual messages of the validator are sentences of words', () => {
  const schema = z.object({
    missing: z.string(),
    number: z.number(),
    whole: z.int(),
    short: z.string().min(3),
    long: z.string().max(1),
    low: z.number().min(1),
    list: z.array(z.string()).min(1),
    word: z.enum(['a', 'b']),
    form: z.string().regex(/^x$/),
    mail: z.email(),
  })
  const found = schema.safeParse({
    number: 'x',
    whole: 1.5,
    short: 'a',
    long: 'abc',
    low: 0,
    list: [],
    word: 'c',
    form: 'y',
    mail: 'z',
  })
  const said = Object.fromEntries(
    found.error?.issues.map(({ path, message }) => [path.join('.'), problemSentence(message)]) ??
      [],
  )
  expect(said).toEqual({
    missing: 'It is required.',
    number: 'It must be a number.',
    whole: 'It must be a whole number.',
    short: 'It must have at least 3 characters.',
    long: 'It must have at most 1 character.',
    low: 'It must be at least 1.',
    list: 'It must have at least 1 item.',
    word: 'It must be one of a, b.',
    form: 'It has a form that is not allowed.',
    mail: 'It is not a valid email address.',
  })
})
