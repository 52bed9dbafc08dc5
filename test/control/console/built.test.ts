/** What `build.mjs` has made of the console. */
import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConsole } from '../../../control/console/console-files.ts'

/** Script and style together, as a browser gets them. */
const MAX_BYTES = 80_000

test('script and style together are small, and the page has nothing inline', () => {
  if (readConsole() === undefined) spawnSync('node', ['build.mjs'])
  const folder = 'dist/console/assets'
  const compressed = readdirSync(folder).filter((name) => /\.(?:js|css)\.br$/.test(name))
  expect(compressed).toHaveLength(2)
  const bytes = compressed.map((name) => statSync(join(folder, name)).size)
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES)
  const files = readConsole()
  expect(files?.page).not.toMatch(
    /<style|style=|<script(?![^>]*src="\/console\/assets\/console-\w+\.js")/,
  )
  expect(files?.page).not.toMatch(/https?:/)
  for (const [, name = ''] of files?.page.matchAll(/"\/console\/assets\/([^"]+)"/g) ?? [])
    expect([...(files?.assets.keys() ?? [])]).toContain(name)
})
