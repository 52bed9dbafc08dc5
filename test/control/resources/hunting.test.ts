/** The rules by which calls hunt, as they are written and shown. */
import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const path = '/api/v1/routing/carriers'
const body = (hunting?: unknown) => ({
  name: 'north',
  gateways: [{ host: '192.0.2.1' }],
  ...(hunting !== undefined && { hunting }),
})

const usual = {
  next_on: null,
  stop_on: [],
  max_attempts: null,
  max_seconds: null,
  redirects: 'refuse',
  answers: [],
}

test('rules are shown in one form; a change of one leaves the others, null is the usual', async () => {
  const { call } = await openResources()
  const created = await call(
    'POST',
    path,
    body({
      next_on: ['404', '5XX', ' q.850 ; CAUSE = 034'],
      stop_on: ['Q.850;cause=17'],
      max_attempts: 3,
      redirects: 'follow',
      answers: [{ match: '5xx', status: 480 }],
    }),
  )
  const rules = {
    next_on: ['404', '5xx', 'Q.850;cause=34'],
    stop_on: ['Q.850;cause=17'],
    max_attempts: 3,
    max_seconds: null,
    redirects: 'follow',
    answers: [{ match: '5xx', status: 480, reason: null }],
  }
  expect(created.data()).toMatchObject({ hunting: rules })
  const at = `${path}/${created.data<{ id: number }>().id}`
  const patch = async (hunting: unknown) => {
    const changed = await call('PATCH', at, { hunting })
    return [changed.data<{ hunting: unknown }>().hunting, changed.headers.get('x-change-id')]
  }
  const [less] = await patch({ next_on: null, max_seconds: 8 })
  expect(less).toEqual({ ...rules, next_on: null, max_seconds: 8 })
  const [none, change] = await patch(null)
  expect(none).toEqual(usual)
  await call('POST', `/api/v1/changes/${String(change)}/undo`, { reason: 'test' })
  expect((await call('GET', at)).data()).toMatchObject({ hunting: less })
})

test('a carrier of which nothing is said hunts as usual', async () => {
  const { call } = await openResources()
  expect((await call('POST', path, body())).data()).toMatchObject({ hunting: usual })
})

const refused: readonly (readonly [string, unknown, string])[] = [
  ['a status of success', { next_on: ['200'] }, 'hunting.next_on.0'],
  ['a class of success', { stop_on: ['2xx'] }, 'hunting.stop_on.0'],
  ['no status', { next_on: ['7xx'] }, 'hunting.next_on.0'],
  ['a number', { next_on: [503] }, 'hunting.next_on.0'],
  ['digits of another script', { next_on: ['٥٠٣'] }, 'hunting.next_on.0'],
  ['cause 0', { next_on: ['Q.850;cause=0'] }, 'hunting.next_on.0'],
  ['cause 128', { stop_on: ['Q.850;cause=128'] }, 'hunting.stop_on.0'],
  ['a cause of SIP', { stop_on: ['SIP;cause=503'] }, 'hunting.stop_on.0'],
  ['too many', { next_on: Array.from({ length: 33 }, () => '503') }, 'hunting.next_on'],
  ['a text', { next_on: '503' }, 'hunting.next_on'],
  ['no attempt', { max_attempts: 0 }, 'hunting.max_attempts'],
  ['half an attempt', { max_attempts: 1.5 }, 'hunting.max_attempts'],
  ['too many attempts', { max_attempts: 17 }, 'hunting.max_attempts'],
  ['no time', { max_seconds: 0 }, 'hunting.max_seconds'],
  ['another policy', { redirects: 'always' }, 'hunting.redirects'],
  ['a challenge', { answers: [{ match: '503', status: 407 }] }, 'hunting.answers.0.status'],
  ['an answer', { answers: [{ match: '503', status: 200 }] }, 'hunting.answers.0.status'],
  ['a redirection', { answers: [{ match: '503', status: 302 }] }, 'hunting.answers.0.status'],
  ['an unknown status', { answers: [{ match: '503', status: 499 }] }, 'hunting.answers.0.status'],
  ['a match of 2xx', { answers: [{ match: '200', status: 480 }] }, 'hunting.answers.0.match'],
  [
    'a header in a reason',
    { answers: [{ match: '503', status: 480, reason: 'a\r\nX: b' }] },
    'hunting.answers.0.reason',
  ],
  [
    'a long reason',
    { answers: [{ match: '503', status: 480, reason: 'a'.repeat(65) }] },
    'hunting.answers.0.reason',
  ],
  ['an unknown member', { next: [] }, 'hunting.next'],
]

test('whatever makes no sense is refused, and says where it stands', async () => {
  const { call } = await openResources()
  const answers: string[] = []
  for (const [what, hunting] of refused) {
    const { status, body: said } = await call('POST', path, body(hunting))
    const { details } = said as { readonly details?: readonly { readonly path: string }[] }
    answers.push(`${what}: ${status} ${details?.[0]?.path ?? ''}`)
  }
  expect(answers).toEqual(refused.map(([what, , where]) => `${what}: 400 ${where}`))
})
