/**
 * Gives the package a package.json that names, of the dependencies, those that it carries in
 * node_modules: dist/ contains all others, so npm has nothing to fetch. `postpack` puts the whole
 * one back.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const whole = 'package.json.orig'
// After a packing that was interrupted, the whole one is there already.
if (!existsSync(whole)) renameSync('package.json', whole)
const manifest = JSON.parse(readFileSync(whole, 'utf8'))
for (const name of ['scripts', 'allowScripts', 'devDependencies']) delete manifest[name]
const carried = manifest.bundleDependencies.map((name) => [name, manifest.dependencies[name]])
manifest.dependencies = Object.fromEntries(carried)
writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
