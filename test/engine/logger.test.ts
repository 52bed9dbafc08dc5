import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLogger } from '../../engine/logger.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()

const linesOf = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('a flush leaves every line in the file, as JSON with level, time and message', async () => {
  const path = join(folder, 'a.log')
  const logger = createLogger('info', openSync(path, 'a'))
  logger.log('info', 'call', { billsec: 3 })
  logger.log('debug', 'not this one')
  await logger.flush()
  expect(linesOf(path)).toEqual([
    { level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/), billsec: 3, msg: 'call' },
  ])
})

test.each(['info', 'debug'] as const)(
  'at %s an error is shown as an operator needs it',
  async (level) => {
    const path = join(folder, `${level}.log`)
    const logger = createLogger(level, openSync(path, 'a'))
    logger.log('error', 'failed', { error: new TypeError('boom') })
    await logger.flush()
    const [line] = linesOf(path)
    expect(line?.['error']).toMatchObject({ type: 'TypeError', message: 'boom' })
    expect(JSON.stringify(line).includes('stack')).toBe(level === 'debug')
  },
)

test('last words are in the file when the call returns', () => {
  const path = join(folder, 'last.log')
  const logger = createLogger('info', openSync(path, 'a'))
  logger.lastWords('the end', { error: new Error('boom') })
  expect(linesOf(path)).toMatchObject([{ level: 'fatal', msg: 'the end' }])
})
