/** The example of test/README.md: the built program. */
import { expect, onTestFinished, test } from 'vitest'
import { TollgateProcess } from '../support/tollgate-process.ts'

test('a started program is ready', async () => {
  const tollgate = await TollgateProcess.start({})
  onTestFinished(() => tollgate.stop())
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)
  expect(answer.status).toBe(200)
})
