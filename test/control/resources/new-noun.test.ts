/** The new noun of CONTRIBUTING.md, applied to a copy of the sources. */
import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { newestVersion } from '../../../schema/migrations/index.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const section = /\n## A new noun\n([\s\S]*?)\n## /.exec(
  readFileSync('CONTRIBUTING.md', 'utf8'),
)?.[1]

/** The file that a block of the section shows whole. */
const [, place = '', definition = ''] = /```ts\n\/\/ (\S+)\n([\s\S]*?)```/.exec(section ?? '') ?? []
const diff = /```diff\n([\s\S]*?)```/.exec(section ?? '')?.[1] ?? ''

/** A copy of the sources with the noun. */
function sourcesWithIt(): string {
  const folder = temporaryFolder()
  for (const name of ['control', 'engine', 'schema', 'test/support', 'package.json'])
    cpSync(name, join(folder, name), { recursive: true })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, place), definition)
  for (const part of diff.split(/^--- /m).slice(1)) {
    const [head = '', ...lines] = part.trimEnd().split('\n')
    const path = join(folder, head.split(':')[0] ?? '')
    const isNew = lines.every((line) => line.startsWith('+'))
    writeFileSync(
      path,
      isNew ? added(lines).join('\n') : patched(readFileSync(path, 'utf8'), lines),
    )
  }
  return folder
}

const added = (lines: readonly string[]): readonly string[] => lines.map((line) => line.slice(1))

/**
 * Added lines come after the line that is shown before them; first ones before the next shown. Shown
 * lines stand in the order of the file.
 */
function patched(text: string, lines: readonly string[]): string {
  const file = text.split('\n')
  const first: string[] = []
  let at: number | undefined
  for (const line of lines) {
    const content = line.slice(1)
    if (line.startsWith('+') && at === undefined) first.push(content)
    else if (line.startsWith('+') && at !== undefined) file.splice((at += 1), 0, content)
    else {
      at = file.indexOf(content, at)
      expect(at, `${content} is not there`).not.toBe(-1)
      file.splice(at, 0, ...first)
      at += first.splice(0).length
    }
  }
  return file
    .join('\n')
    .replace(/version: \d+(?=, name: 'contacts')/, `version: ${newestVersion + 1}`)
}

test('a file, a migration and a line give a noun routes, a seed section, undo, tools and a screen', () => {
  expect(definition.split('\n').length).toBeLessThanOrEqual(80)
  const seen: unknown = JSON.parse(run(sourcesWithIt()))
  expect(seen).toEqual({
    // Created, changed, back by undo, listed, deleted, gone.
    routes: [201, 200, null, 200, 200, 404],
    undone: { status: 200, names: ['Desk'] },
    seeds: [
      { created: 1, updated: 0, unchanged: 0 },
      { created: 0, updated: 0, unchanged: 1 },
    ],
    tools: {
      tried: { effect: 'The contact "Added" is created.', id: null, names: ['Seeded'] },
      added: 'The contact "Added" is created.',
      twice: [409, 'duplicate'],
      changed: 'The contact "Added" is changed: name "Changed", was "Added".',
      same: false,
      listed: [expect.objectContaining({ name: 'Changed', number: '4930300', customer: null })],
      changeUndone: { status: 200, names: ['Added', 'Seeded'] },
      additionUndone: { status: 200, names: ['Seeded'] },
      removed: 'The contact "Seeded" is removed.',
      namesAtEnd: [],
    },
    screens: [
      expect.objectContaining({
        many: 'contacts',
        path: '/contacts',
        columns: [
          { name: 'name', kind: 'text' },
          { name: 'tenant', kind: 'text' },
          { name: 'number', kind: 'text' },
          { name: 'customer', kind: 'text' },
          { name: 'is_hidden', kind: 'flag' },
          { name: 'note', kind: 'text' },
          { name: 'created_at', kind: 'moment' },
        ],
      }),
    ],
    isOfClient: true,
  })
})

const run = (cwd: string): string =>
  execFileSync(process.execPath, ['test/support/new-noun.ts'], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', TEST_DATABASE: '' },
  })
