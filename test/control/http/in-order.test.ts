import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { ControlEnv, Step } from '../../../control/http/control-env.ts'
import { butPreflight, inOrder } from '../../../control/http/front.ts'

function opened(...steps: readonly Step[]) {
  const app = new Hono<ControlEnv>()
  app.use(inOrder(...steps))
  app.all('*', (c) => c.text('handled'))
  app.onError((error, c) => c.text(error.message, 403))
  return app
}

test('a step runs after those before it, whether they wait or not, and the handler after all', async () => {
  const order: number[] = []
  const waits = (step: number) => async () => {
    await Promise.resolve()
    order.push(step)
  }
  const app = opened(waits(1), () => void order.push(2), butPreflight(waits(3), waits(4)), waits(5))
  expect(await (await app.request('/')).text()).toBe('handled')
  expect(order.splice(0)).toEqual([1, 2, 3, 4, 5])
  await app.request('/', { method: 'OPTIONS' })
  expect(order).toEqual([1, 2, 5])
})

test.each([
  [
    'throws',
    () => {
      throw new Error('refused')
    },
  ],
  ['rejects', () => Promise.reject(new Error('refused'))],
] as const)('a step that %s ends the request', async (_, refuses) => {
  let isReached = false
  const waits = () => Promise.resolve()
  const app = opened(waits, refuses, () => void (isReached = true))
  const answer = await app.request('/')
  expect([answer.status, await answer.text(), isReached]).toEqual([403, 'refused', false])
})
