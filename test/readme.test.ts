import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { seedFile } from '../engine/commands/seed.ts'
import { emptyStore } from './support/empty-store.ts'

const readme = readFileSync('README.md', 'utf8')
const guide = readFileSync('GUIDE.md', 'utf8')

test('the seed files of README.md and GUIDE.md can be applied, one after the other', async () => {
  const text = readme + guide
  const store = emptyStore()
  const files = [...text.matchAll(/<<'JSON'\n([\s\S]*?)\nJSON|```json\n([\s\S]*?)\n```/g)]
  expect(files.length).toBeGreaterThanOrEqual(2)
  for (const [, heredoc, block] of files) await seedFile(store, heredoc ?? block ?? '', 0)
  store.close()
})

test('a file that the documents write has its folder made before', () => {
  for (const [, folder = ''] of (readme + guide).matchAll(/^cat > ([\w./-]+)\/[\w.-]+ <</gm))
    expect(readme + guide).toContain(`mkdir -p ${folder}\ncat > ${folder}/`)
})

test('what the README points to exists', () => {
  for (const [, path = ''] of readme.matchAll(/\]\(([^)#:]+)\)/g))
    expect(existsSync(path)).toBe(true)
})

test('every npm script that the documents mention is there', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object }
  const documents = ['README.md', 'GUIDE.md', 'CONTRIBUTING.md', 'SPECIFICATION.md']
    .map((name) => readFileSync(name, 'utf8'))
    .join('\n')
  const mentioned = [...documents.matchAll(/npm (?:run ([\w-]+)|(test|start)\b)/g)]
  for (const [, run, own] of mentioned) expect(scripts).toHaveProperty(run ?? own ?? '')
})

test('each guarantee of SECURITY.md stands once, and names a test', () => {
  const [, list = ''] = readFileSync('SECURITY.md', 'utf8').split('## What is guaranteed')
  const guarantees = list.split('\n').filter((line) => line.startsWith('- '))
  expect(guarantees.length).toBeGreaterThan(40)
  expect(guarantees).toEqual([...new Set(guarantees)])
  // `documents.test.ts` finds a path that does not exist.
  expect(guarantees.filter((line) => !/`test\/[\w/.-]+\.test\.ts`$/.test(line))).toEqual([])
})
