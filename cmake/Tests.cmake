# Tests of the tree as a whole: what no compiler checks.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(urnic_tree_test name)
  add_test(NAME tree.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  # 77: the tool it needs is missing; the reason is printed.
  set_tests_properties(tree.${name} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77 LABELS tree)
endfunction()

urnic_tree_test(includes ${Python3_EXECUTABLE} tools/check-includes)
urnic_tree_test(includes-catches-breach ${Python3_EXECUTABLE} tests/tools/check_includes_test.py)
urnic_tree_test(classes ${Python3_EXECUTABLE} tools/check-classes)
urnic_tree_test(classes-catches-breach ${Python3_EXECUTABLE} tests/tools/check_classes_test.py)
urnic_tree_test(words ${Python3_EXECUTABLE} tools/check-words)
urnic_tree_test(words-catches-breach ${Python3_EXECUTABLE} tests/tools/check_words_test.py)
urnic_tree_test(places ${Python3_EXECUTABLE} tools/check-places)
urnic_tree_test(places-catches-breach ${Python3_EXECUTABLE} tests/tools/check_places_test.py)
urnic_tree_test(abi-catches-breach ${Python3_EXECUTABLE} tests/tools/check_abi_test.py)
urnic_tree_test(instructions-catches-breach ${Python3_EXECUTABLE} tests/tools/instructions_test.py)
urnic_tree_test(format tools/check-format)
# docs/reliability.md names only commands that exist.
urnic_tree_test(reliability ${Python3_EXECUTABLE} tools/reliability --check --build ${CMAKE_BINARY_DIR})
# docs/resources.md is what the code says of its bounds.
urnic_tree_test(resources ${Python3_EXECUTABLE} tools/resources --check)
urnic_tree_test(resources-catches-breach ${Python3_EXECUTABLE} tests/tools/resources_test.py)
# What docs/performance.md and README.md show beside others is what was recorded.
urnic_tree_test(compare ${Python3_EXECUTABLE} bench/compare --check)
urnic_tree_test(compare-catches-breach ${Python3_EXECUTABLE} tests/tools/compare_test.py)
urnic_tree_test(conformance-catches-breach ${Python3_EXECUTABLE} tests/tools/conformance_test.py)
urnic_tree_test(rdma-core-tests-catches-breach ${Python3_EXECUTABLE} tests/tools/rdma_core_tests_test.py)
urnic_tree_test(failed-tests-catches-breach ${Python3_EXECUTABLE} tests/tools/failed_tests_test.py)
urnic_tree_test(mutants-catches-breach ${Python3_EXECUTABLE} tests/tools/mutants_test.py)
urnic_tree_test(mutated-sources ${Python3_EXECUTABLE} tests/tools/mutated_sources_test.py)
