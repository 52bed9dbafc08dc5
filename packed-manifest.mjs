/**
 * Gives the package a package.json with the dependencies that it carries in node_modules: dist/
 * contains all others, so npm has nothing to fetch. `postpack` puts the whole one back.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const whole = 'package.json.orig'
// After a packing that was interrupted, the whole one is there already.
if (!existsSync(whole)) renameSync('package.json', whole)
const { dependencies, devDependencies: _, ...manifest } = JSON.parse(readFileSync(whole, 'utf8'))
const carried = Object.entries(dependencies).filter(([name]) =>
  manifest.bundleDependencies.includes(name),
)
const packed = { ...manifest, dependencies: Object.fromEntries(carried) }
writeFileSync('package.json', `${JSON.stringify(packed, null, 2)}\n`)
