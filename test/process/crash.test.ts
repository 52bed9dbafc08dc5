import { join } from 'node:path'
import { expect, test } from 'vitest'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

/** Code that runs in the program's process shortly after it has printed that it is ready. */
const whenReady = (code: string): string => {
  const script = `const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = (text, ...rest) => {
      if (String(text).startsWith('ready ')) setTimeout(() => { ${code} }, 50)
      return write(text, ...rest)
    }`
  return `--import=data:text/javascript,${encodeURIComponent(script)}`
}

test.each([
  ['an exception', "throw new Error('boom')"],
  ['a rejection', "Promise.reject(new Error('boom'))"],
])('%s that nothing catches: one fatal line, exit code 1', async (what, code) => {
  const program = startProgram(['serve'], {
    ...(await settingsOfDatabase(join(folder, `${what}.db`))),
    NODE_OPTIONS: whenReady(code),
    LOG_LEVEL: 'fatal',
  })
  await program.line(/^ready /)
  expect(await program.ended).toBe(1)
  expect(program.complaints.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({
      level: 'fatal',
      error: expect.objectContaining({ message: 'boom' }),
    }),
  ])
})
