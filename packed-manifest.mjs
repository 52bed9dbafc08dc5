/**
 * `node packed-manifest.mjs` gives the package a package.json that names, of the dependencies,
 * those that it carries in node_modules: dist/ contains all others, so npm has nothing to fetch.
 * With `whole` it puts the whole one back: after packing, and before, as the last packing may have
 * been interrupted.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const whole = 'package.json.orig'

if (process.argv[2] === 'whole') {
  if (existsSync(whole)) renameSync(whole, 'package.json')
} else {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
  renameSync('package.json', whole)
  for (const name of ['allowScripts', 'devDependencies']) delete manifest[name]
  const { prepack, postpack } = manifest.scripts
  manifest.scripts = { prepack, postpack }
  const carried = manifest.bundleDependencies.map((name) => [name, manifest.dependencies[name]])
  manifest.dependencies = Object.fromEntries(carried)
  writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
}
